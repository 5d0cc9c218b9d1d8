"""Dry runs: everything is checked and answered as if it were done, and nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def undone_if(dry_run: bool) -> Iterator[None]:
    """One transaction. What it wrote can be read inside, and is undone at the end of a dry run."""
    with transaction.atomic():
        yield
        if dry_run:
            transaction.set_rollback(True)
