"""Open pages are told at once when somebody's rights change.

The tables tell it, not the services: Django writes some of them itself (signing out,
`manage.py changepassword`), and a grant is also deleted with its queue or its group.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.db.models.signals import m2m_changed, post_delete, post_save
from django.utils import timezone

from scheduler import notify
from scheduler.models import Grant


def listen_for_changes() -> None:
    for model in (get_user_model(), Group, Grant):
        post_save.connect(_tell, sender=model)
        post_delete.connect(_tell, sender=model)
    post_delete.connect(_tell_of_sign_out, sender=Session)
    m2m_changed.connect(_tell, sender=get_user_model().groups.through)


def _tell(**_signal: Any) -> None:
    notify.access_changed()


def _tell_of_sign_out(instance: Session, **_signal: Any) -> None:
    """Expired sessions are deleted by the thousand, and nobody needs to hear of them."""
    if instance.expire_date > timezone.now():
        notify.access_changed()
