"""Lists that are followed: `?watch=1` gives every change of a list as server-sent events."""
