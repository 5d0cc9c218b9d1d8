"""Lists that are followed."""
