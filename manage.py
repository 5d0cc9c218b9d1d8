#!/usr/bin/env python
"""Django's command line. Problems of a first start become sentences instead of tracebacks."""

import os
import sys


def main() -> None:
    # Checked before anything is imported that an older Python cannot read.
    if sys.version_info < (3, 11):  # noqa: UP036
        version = sys.version.split()[0]
        sys.exit(
            f"Fumarole needs Python 3.11 or newer; this is Python {version}. "
            "Install a newer Python and run it again."
        )
    try:
        run(sys.argv)
    except ModuleNotFoundError as error:
        if error.name not in ("django", "redis"):
            raise
        sys.exit(
            "Django is not installed in this Python. "
            "Run “make run”, which sets everything up, or use .venv/bin/python."
        )


def run(arguments: list) -> None:
    # These two need neither Django nor settings.
    if arguments[1:] == ["up"]:
        from scheduler.supervisor import up

        sys.exit(up.main())
    if arguments[1:2] == ["simulate"]:
        from scheduler.management import simulation

        sys.exit(simulation.main(arguments[2:]))
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from scheduler.supervisor.installation import var_from
    from scheduler.supervisor.runtime import lend_secret_key

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    lend_secret_key(os.environ, var_from(os.environ))
    if arguments[1:2] == ["kubernetes"]:  # it signs nothing
        os.environ.setdefault("SECRET_KEY", "not needed")
    try:
        execute_from_command_line(arguments)
    except ImproperlyConfigured as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
