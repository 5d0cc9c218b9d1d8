"""What beat sends, and when. Beat needs this and the settings, and nothing that tasks need."""

from __future__ import annotations

from celery import Celery

TICK_SECONDS = 0.5
"""The base that beat ticks at; the stored period says how many ticks make a session."""


def _every(seconds: float, task: str) -> dict[str, object]:
    # They do not pile up: see MOST_WAITING in dashboard/worker/beat.py.
    return {"task": f"scheduler.tasks.{task}", "schedule": seconds}


TIMETABLE = {
    "session": _every(TICK_SECONDS, "run_session"),
    "cluster": _every(1.0, "watch_cluster"),
    "work": _every(1.0, "generate_work"),
    "calendar": _every(2.0, "keep_calendar"),
    "start times": _every(5.0, "renew_start_times"),
    "notices": _every(2.0, "send_notices"),
    "long waits": _every(60.0, "look_for_long_waits"),
    "tidy": _every(60.0, "tidy"),
}


def clock() -> Celery:
    """An app that sends by name: with no fixups, Celery does not load the apps of Django."""
    app = Celery("fumarole", fixups=[])
    app.config_from_object("django.conf:settings", namespace="CELERY")
    app.conf.beat_schedule = TIMETABLE
    return app
