"""Records of what happened: audit log, events, history, and how long they are kept."""
