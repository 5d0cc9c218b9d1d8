"""Rows and figures as people read them: the same for pages, API and websocket."""
