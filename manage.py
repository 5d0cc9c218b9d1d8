#!/usr/bin/env python
"""Django's command line, with sentences instead of tracebacks for what a first start can run into."""

import os
import sys


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - said here, before anything that an older one can not read is imported
        sys.exit(
            f"Fumarole needs Python 3.11 or newer; this is Python {sys.version.split()[0]}. Install a newer Python and run it again."
        )
    try:
        run(sys.argv)
    except ModuleNotFoundError as error:
        if error.name not in ("django", "redis"):
            raise
        sys.exit(
            "Django is not installed in this Python. Run “make run”, which sets everything up, or use .venv/bin/python."
        )


def run(arguments: list) -> None:
    if arguments[1:] == ["up"]:
        from scheduler.supervisor.up import (
            main as up,
        )  # no Django: it is up before the settings are read

        sys.exit(up())
    if arguments[1:2] == ["simulate"]:
        from scheduler.management.simulation import (
            main as simulate,
        )  # no Django either: a file can be tried without any settings

        sys.exit(simulate(arguments[2:]))
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from scheduler.supervisor.installation import var_from
    from scheduler.supervisor.runtime import lend_secret_key

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    lend_secret_key(os.environ, var_from(os.environ))
    try:
        execute_from_command_line(arguments)
    except ImproperlyConfigured as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
