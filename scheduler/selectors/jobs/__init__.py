"""Questions about jobs, podgroups and pods."""
