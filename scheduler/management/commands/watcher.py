"""`manage.py watcher`: mirror the Kubernetes cluster of the settings, until it is stopped."""

from __future__ import annotations

import signal
import sys
from functools import partial
from typing import Any

from django.core.management import BaseCommand

from scheduler.conf import conf, is_kubernetes


class Command(BaseCommand):
    help = (
        "Mirrors the Kubernetes cluster of KUBECONFIG into the database, until it is stopped. "
        "Needs SCHEDULER_CLUSTER=kubernetes."
    )
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        if not is_kubernetes():
            sys.exit("There is nothing to mirror: set SCHEDULER_CLUSTER=kubernetes.")
        from scheduler.services.cluster.mirror.feed import connect
        from scheduler.services.cluster.mirror.watcher import Watcher

        watcher = Watcher(partial(connect, conf().kubernetes))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: watcher.stop())
        watcher.run()
