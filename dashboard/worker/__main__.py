"""python -m dashboard.worker: a Celery worker or beat, without Celery's own command line.

That one loads a shell that completes words, which would stay in the memory of every process, and
all of Django even for beat.
"""

from __future__ import annotations

import argparse
import logging.config
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dashboard.worker", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("beat", help="send what is due, by the timetable")
    worker = kinds.add_parser("worker", help="take tasks from a queue")
    worker.add_argument("-Q", "--queue", required=True, help="the queue to take them from")
    worker.add_argument("-n", "--name", required=True, help="such as scheduler@%%h")
    worker.add_argument(
        "-c", "--concurrency", type=int, default=1, help="processes that work (default 1)"
    )
    options = parser.parse_args(arguments)
    if options.kind == "beat":
        return send_what_is_due()
    return take_tasks(options.queue, options.name, options.concurrency)


def send_what_is_due() -> int:
    """It needs the broker and the settings, and none of the apps."""
    from celery.apps.beat import Beat
    from django.conf import settings

    from dashboard.worker.timetable import clock

    logging.config.dictConfig(settings.LOGGING)
    Beat(app=clock(), loglevel="WARNING", quiet=True).run()
    return 0


def take_tasks(queue: str, name: str, concurrency: int) -> int:
    from celery.utils.nodenames import default_nodename, host_format

    from dashboard.celery import app
    from dashboard.worker import life

    life.will_take_from(queue)
    os.environ["CELERY_SKIP_CHECKS"] = "true"  # they are for the tests of a version
    worker = app.Worker(
        hostname=host_format(default_nodename(name)),
        queues=[queue],
        pool_cls="prefork",
        concurrency=concurrency,
        loglevel="WARNING",
        without_gossip=True,  # workers need not know each other
        without_mingle=True,
        quiet=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
