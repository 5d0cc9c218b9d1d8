"""Who may be evicted, and for whom."""
