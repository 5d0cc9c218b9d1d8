"""Live pages: the websocket, what a page can follow, and what everybody is told."""
