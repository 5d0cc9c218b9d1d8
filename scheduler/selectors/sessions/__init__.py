"""What sessions read: the snapshot, and the log of changed rows behind it."""
