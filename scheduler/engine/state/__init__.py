"""What a session knows and changes: queue tree, queue usage, nodes and gangs."""
