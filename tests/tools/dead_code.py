"""Code that nothing uses, found by vulture: `make check` runs it.

What is used from outside Python is left out.

A name counts as used where another module, a template or a framework uses it; a test alone does
not count. A name that must stay although nothing here names it is listed below, with the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from vulture import Vulture
from vulture.core import Item

ROOT = Path(__file__).resolve().parents[2]
CODE = ("scheduler", "dashboard", "manage.py")
LEFT_OUT = ("*/migrations/*",)
TEMPLATES = ("templates/**/*.html",)
DOTTED_PATHS = ("pyproject.toml", "dashboard/settings.py", "scheduler/supervisor/programs.py")
"""Where our code is named as text: `dashboard.http.lockout.address_of`."""

CALLED_BY_FRAMEWORKS = [
    "@command",
    "@*.command",
    "@*.callback",
    "@*.connect",
    "@receiver",
    "@register.*",
    "@action",
    "@*.mapping.*",
    "@shared_task",
]
"""Decorators that hand a function to Typer, Celery, Django or the REST framework."""

ALLOWED: dict[str, str] = {
    "scheduler/models/quiet_migrations.py:TogetherOnce": "migrations use it",
    "scheduler/models/quiet_migrations.py:FillRows": "migrations use it",
    "scheduler/models/quiet_migrations.py:portions": "migrations use it",
    "scheduler/models/quiet_migrations.py:AddIndexQuietly": "for migrations to come",
    "scheduler/models/quiet_migrations.py:RemoveIndexQuietly": "for migrations to come",
    "scheduler/models/quiet_migrations.py:AddCheckQuietly": "for migrations to come",
    "scheduler/models/quiet_migrations.py:CheckOldRows": "for migrations to come",
    "dashboard/settings.py:*": "Django, Celery, axes and the REST framework read settings by name",
    "dashboard/admin.py:*": "attributes of Django's admin site",
    "dashboard/*urls.py:app_name": "Django's name for a namespace of routes",
    "dashboard/urls.py:handler400": "Django's name for the page of a bad request",
    "*/apps.py:*Config": "Django finds it in the module apps",
    "scheduler/clusters/kubernetes/*:*": "what the mirror and the dispatch of a real cluster take",
    "scheduler/conf.py:demo": "a key of the setting SCHEDULER",
    "scheduler/models/*:Meta": "Django reads it",
    "scheduler/models/*:abstract": "Django reads it",
    "scheduler/models/*:verbose_name_plural": "Django reads it",
    "scheduler/models/*:lookup_name": "Django reads it",
    "*:as_sqlite": "Django calls it on SQLite",
    "*:as_postgresql": "Django calls it on PostgreSQL",
    "*:output_field": "Django reads it",
    "scheduler/models/fields.py:value_to_string": "Django's serialisers call it",
    "scheduler/services/sessions/claim.py:adding": "state of a Django row",
    "scheduler/services/sessions/claim.py:db": "the same",
    "scheduler/models/prepared.py:adding": "state of a Django row that was read without a queryset",
    "scheduler/models/prepared.py:db": "state of a Django row that was read without a queryset",
    "*:requires_system_checks": "an attribute of Django's commands",
    "scheduler/services/notices/webhooks.py:default_port": "http.client reads it",
    "*:process_exception": "Django calls it on middleware",
    "*:get_failures": "axes calls it",
    "*:is_staff": "a column of Django's accounts",
    "dashboard/forms/*:error_messages": "Django reads it",
    "dashboard/sso/adapters.py:*": "allauth calls it",
    "dashboard/sso/provider.py:*": "allauth calls it",
    "dashboard/http/second_factor.py:authenticate": "Django asks each backend",
    "dashboard/http/sign_in.py:*": "attributes of Django's sign-in page",
    "dashboard/http/handler.py:_handler_class": "Django's file server reads it",
    "dashboard/api/*:*_classes": "the REST framework reads it",
    "dashboard/api/*:http_method_names": "the REST framework reads it",
    "dashboard/api/*:get_exception_handler": "the REST framework calls it",
    "dashboard/api/framework/authentication.py:authenticate*": "the REST framework calls it",
    "dashboard/api/framework/throttling.py:allow_request": "the REST framework calls it",
    "dashboard/api/*:retrieve": "the REST framework's word for GET of one object",
    "dashboard/api/*:partial_update": "the REST framework's word for PATCH",
    "dashboard/api/*:destroy": "the REST framework's word for DELETE",
    "dashboard/api/bulk.py:retry": "the table of the class names it as an operation",
    "dashboard/api/*:follow_log": "the table of the class names it as an operation",
    "dashboard/api/me.py:change_preferences": "the table of the class names it as an operation",
    "dashboard/api/me.py:reset_second_factor": "the table of the class names it as an operation",
    "dashboard/api/nodes.py:bring_back": "the table of the class names it as an operation",
    "dashboard/api/filters.py:*": "filters of a list: each is a parameter of the API",
    "dashboard/api/framework/formats.py:*": "attributes of REST framework renderers",
    "dashboard/api/schema/openapi.py:*": "drf-spectacular calls it",
    "dashboard/cli/output.py:ignore_aliases": "PyYAML calls it",
    "scheduler/yaml_texts.py:ignore_aliases": "PyYAML calls it",
    "dashboard/cli/commands.py:__*__": "Python's own names: Typer reads them",
    "dashboard/worker/beat.py:*": "Celery's scheduler calls it",
    "dashboard/worker/log.py:exc_text": "logging reads it",
    "dashboard/worker/log.py:levelno": "logging reads it",
    "scheduler/engine/plugin.py:*": "the questions that a plugin may answer; asked by name",
    "scheduler/engine/plugins/*:*": "answers to those questions; asked by name",
    "scheduler/engine/state/queue_specs.py:writeable": "a flag of a numpy array",
    "scheduler/engine/state/kept_nodes.py:writeable": "a flag of a numpy array",
    "scheduler/models/record.py:message_digest": "a column that statements name in texts",
    "scheduler/models/session.py:fencing_token": "a column, kept to be looked at after a failure",
    "scheduler/models/workload.py:half_bound_since": "a column that only queries name",
    "scheduler/models/workload.py:owner_user": "a column, kept beside the name of the owner",
    "scheduler/models/workload.py:sla_waiting_seconds": "a column that statements name in texts",
    "scheduler/admission/reading/workload.py:sub_group_policy": "checked while it is read",
    "scheduler/domain/lifecycle.py:state_named": "Volcano's cases on the names of states ask it",
    "scheduler/engine/statement.py:error_type": "Python's signature of leaving a with block",
    "scheduler/supervisor/lock.py:traceback": "Python's signature of leaving a with block",
}
"""File and name, both with `*`, and why it stays."""


def unused_names(code: Iterable[str]) -> list[Item]:
    """What neither Python nor a template nor a setting uses."""
    vulture = Vulture(ignore_decorators=CALLED_BY_FRAMEWORKS)
    vulture.scavenge([str(ROOT / path) for path in code], exclude=[*LEFT_OUT])
    named = {*_words_of_templates(), *_dotted_names()}
    return [item for item in vulture.get_unused_code() if item.name not in named]


def _words_of_templates() -> Iterator[str]:
    for text in _texts(TEMPLATES):
        yield from re.findall(r"[A-Za-z_]\w*", text)


def _dotted_names() -> Iterator[str]:
    for text in _texts(DOTTED_PATHS):
        for path in re.findall(r"\"((?:dashboard|scheduler)[\w.:]+)\"", text):
            yield from re.split("[.:]", path)


def _texts(patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        for file in ROOT.glob(pattern):
            yield file.read_text(encoding="utf-8")


def reason_for(item: Item) -> str:
    """Why the name may stay; empty if nothing says so."""
    place = f"{_path(item)}:{item.name}"
    for pattern, reason in ALLOWED.items():
        if fnmatchcase(place, pattern):
            return reason
    return ""


def _path(item: Item) -> str:
    return Path(item.filename).resolve().relative_to(ROOT).as_posix()


def _line(item: Item) -> str:
    return f"{_path(item)}:{item.first_lineno}: {item.typ} {item.name} is used nowhere"


def main() -> None:
    unexplained = [item for item in unused_names(CODE) if not reason_for(item)]
    for item in unexplained:
        print(_line(item))
    if unexplained:
        sys.exit("Delete it, or name it in tests/tools/dead_code.py with the reason why it stays.")


if __name__ == "__main__":
    main()
