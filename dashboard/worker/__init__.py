"""The Celery worker and beat: their clock, their life, their log."""
