"""The web as a Django app.

It loads the Celery app, so that tasks called from here find their broker.
"""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard import celery  # noqa: F401
        from dashboard.live import access_changes
        from dashboard.worker import log

        access_changes.listen_for_changes()
        log.carry_ids_with_tasks()
