"""Django's own administration at /admin/, for superusers: all tables can be read, none changed.

Changes go through the services. Accounts and groups are changed on /users/, so that the audit log
has it.
"""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Field, JSONField, Model, TextField
from django.http import HttpRequest

_MOST_COLUMNS = 8


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A table and a page for each row; no counting of long tables, no button that writes."""

    show_full_result_count = False
    list_per_page = 50
    actions = None

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def has_view_permission(self, request: HttpRequest, *_: Any, **__: Any) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    has_module_permission = has_view_permission


def _columns(model: type[Model]) -> list[str]:
    """The first plain columns; long texts and secrets are on no list."""
    plain = []
    for field in model._meta.fields:
        if not isinstance(field, (JSONField, TextField)) and field.name not in _SECRET:
            plain.append(field)
    return [field.name for field in plain][:_MOST_COLUMNS]


# The address of a chat room has its key in it.
_SECRET = ("digest", "password", "content", "secret", "old_secret", "target")


def _admin_for(model: type[Model]) -> type[ReadOnlyAdmin]:
    names = {field.name for field in model._meta.fields}
    related = []
    for field in model._meta.fields:
        if isinstance(field, Field) and field.is_relation:
            related.append(field.name)
    return type(
        f"{model.__name__}Admin",
        (ReadOnlyAdmin,),
        {
            "list_display": _columns(model),
            "list_select_related": related,
            "search_fields": ["name"] if "name" in names else [],
            "exclude": [name for name in _SECRET if name in names],
        },
    )


def register() -> None:
    """All tables of the scheduler; what others registered is replaced by its read-only form."""
    for model in (
        *apps.get_app_config("scheduler").get_models(),
        User,
        Group,
        AccessAttempt,
        AccessFailureLog,
        AccessLog,
    ):
        if admin.site.is_registered(model):
            admin.site.unregister(model)
        admin.site.register(model, _admin_for(model))
    _hide_tables_of_extras()
    admin.site.site_header = "Fumarole: the tables"
    admin.site.site_title = "Fumarole"
    admin.site.index_title = (
        "Everything can be read here; changes are made on the pages of the console"
    )


def _hide_tables_of_extras() -> None:
    """They hold keys of second factors, and their own forms would change them."""
    for model in list(admin.site._registry):
        if model.__module__.startswith("allauth."):
            admin.site.unregister(model)


register()
