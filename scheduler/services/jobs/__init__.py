"""What can be done to jobs and podgroups: submit, change, command, and follow them to their end."""
