"""What an installation has from the beginning: the built-in queues, an administrator, a sample
cluster.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from scheduler.domain.queues import DEFAULT, ROOT
from scheduler.models import ClusterState, Namespace, Node, Queue, SimulatedCluster
from scheduler.supervisor.runtime import write_private

ADMIN = "admin"
PASSWORD_FILE = "admin-password"  # noqa: S105 - the file's name


@dataclass(frozen=True, slots=True)
class FirstStart:
    """What the first start made, for the supervisor to tell.

    Empty texts and False where it was there already.
    """

    password_file: Path | None = None
    sample_loaded: bool = False


def ensure_builtin_objects(using: str = "default") -> None:
    """Create `root`, `default`, the default namespace and the single rows if missing."""
    root, _ = Queue.objects.using(using).get_or_create(
        name=ROOT, defaults={"parent": None, "reclaimable": False}
    )
    Queue.objects.using(using).get_or_create(name=DEFAULT, defaults={"parent": root})
    Namespace.objects.using(using).get_or_create(name=DEFAULT)
    ClusterState.objects.using(using).get_or_create(id=1)
    SimulatedCluster.objects.using(using).get_or_create(id=1)


@transaction.atomic
def first_start() -> FirstStart:
    """Create the administrator and, unless DEMO=0, the sample cluster.

    Does nothing on an installation that has users.

    All or nothing: one that is interrupted begins again at the next start.
    """
    ensure_builtin_objects()
    password = _create_admin()
    sample = bool(password) and settings.SCHEDULER["demo"] and not Node.objects.exists()
    if sample:
        from scheduler.services.demo.sample import load_sample_cluster

        load_sample_cluster()
    return FirstStart(_password_file() if password else None, sample)


def _password_file() -> Path:
    return Path(settings.VAR_DIR) / PASSWORD_FILE


def _create_admin() -> str:
    """The new administrator's password, or "" where there are users already."""
    users = get_user_model().objects
    if users.exists():
        return ""
    password = secrets.token_urlsafe(12)
    users.create_superuser(username=ADMIN, password=password)
    write_private(_password_file(), password)
    return password
