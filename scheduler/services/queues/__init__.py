"""What can be done to queues: create, update, delete, open, close, suspend and resume."""
