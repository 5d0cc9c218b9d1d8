"""Questions about queues."""
