"""May this be created, changed, deleted? Every rule, by subject."""
