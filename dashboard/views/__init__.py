"""Pages. Each reads through selectors and shows through presenters; commands go to services."""
