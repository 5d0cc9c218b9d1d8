"""Questions about notices."""
