"""The head of a page names the modules that its script imports, so that they are
fetched at once.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from dashboard.templatetags.modules import imported_modules

SCRIPTS = Path(__file__).parents[3] / "static" / "js"


def preloaded(client: Client, url: str) -> list[str]:
    page = client.get(url).content.decode()
    return re.findall(r'<link rel="modulepreload" href="/static/(js/[\w-]+\.js)">', page)


@pytest.mark.django_db
def test_a_page_preloads_every_module_that_its_script_imports(admin_client: Client):
    assert preloaded(admin_client, "/account/") == list(imported_modules("js/console.js"))


@pytest.mark.django_db
def test_the_sign_in_page_has_no_script_and_preloads_nothing(client: Client):
    assert preloaded(client, "/accounts/login/") == []


def test_imports_of_imports_count_and_those_for_some_pages_do_not():
    found = imported_modules("js/console.js")

    assert "js/elements.js" in found  # which only other modules import
    assert "js/history.js" not in found  # loaded by pages with a chart
    assert len(found) == len(set(found))


def test_every_static_import_is_noticed():
    text = (SCRIPTS / "queue-table.js").read_text()
    written = re.findall(r'from "\./([\w-]+\.js)"', text)

    assert {f"js/{name}" for name in written} <= set(imported_modules("js/queue-table.js"))
