"""Starting, watching and stopping the processes of one installation. Standard library and the Redis client only: no framework."""
