"""Starting, watching and stopping the processes of one installation.

It uses the standard library and the Redis client only, and no framework.
"""
