"""Everything a browser or an HTTP client meets; the Django project."""
