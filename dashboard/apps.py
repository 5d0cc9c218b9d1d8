"""The web as a Django app.

It loads the Celery app, so that tasks called from here find their broker.
"""

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_delete


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard import celery  # noqa: F401
        from dashboard.live import access_changes
        from dashboard.worker import log

        access_changes.listen_for_changes()
        if settings.HAS_SIGN_ON_PACKAGES:
            from dashboard.sso.codes import forget_secrets
            from scheduler.models import SecondFactor

            post_delete.connect(forget_secrets, sender=SecondFactor)
        log.carry_ids_with_tasks()
