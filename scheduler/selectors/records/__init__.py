"""Questions about what happened: events, audit log, history."""
