"""Objects that come as files: apply, merge, and the versions they are checked against."""
