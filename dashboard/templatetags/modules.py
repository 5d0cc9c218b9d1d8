"""Links that tell the browser about JavaScript modules before it finds them one by one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePosixPath

from django import template
from django.conf import settings
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

register = template.Library()

_IMPORT = re.compile(r'^(?:import|export)\b[^;"]*?"(\./[\w-]+\.js)";', re.MULTILINE)


@register.simple_tag
def module_preloads(name: str) -> SafeString:
    """A link for each module that `name` imports, directly or not.

    Without them the browser asks for a module only when it has read the one that imports it.
    """
    if settings.DEBUG:
        imported_modules.cache_clear()  # files change while somebody works at them
    links = []
    for module in imported_modules(name):
        links.append((static(module),))
    return format_html_join("\n    ", '<link rel="modulepreload" href="{}">', links)


@cache
def imported_modules(name: str) -> tuple[str, ...]:
    """Read from the files themselves; what is imported only when it is needed is left out."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        module = waiting.pop(0)
        for imported in _imports_of(module):
            if imported not in found and imported != name:
                found.append(imported)
                waiting.append(imported)
    return tuple(found)


def _imports_of(module: str) -> list[str]:
    path = finders.find(module)
    if path is None:
        return []
    with open(path, encoding="utf-8") as file:
        text = file.read()
    folder = PurePosixPath(module).parent
    imports: list[str] = []
    for relative in _IMPORT.findall(text):
        imports.append(str(folder / relative))
    return imports
