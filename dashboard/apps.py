"""The web as a Django app; it loads the Celery app, so that tasks called from here find their broker, and tells of changed rights."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard import access_news, celery  # noqa: F401

        access_news.listen()
