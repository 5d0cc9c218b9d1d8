"""Pages: what a signed-in reader sees. Each reads through selectors and shows through presenters; orders go to services."""
