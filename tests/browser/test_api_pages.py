"""The API's own pages in a browser: a form that is filled, tried, refused and sent, and pages that
everybody can read.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]


def test_a_grant_is_made_with_a_form(signed_in: Opens):
    page = signed_in("/api/v1/grants/")
    text = page.get_by_label("The object as YAML or JSON")
    expect(text).to_have_value("# user: \n# group: \nrole: viewer\n# queue: ")

    text.fill("user: nobody\nrole: viewer\n")
    page.get_by_role("button", name="Send POST").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no user nobody.")
    expect(text).to_have_value("user: nobody\nrole: viewer\n")

    text.fill("user: admin\nrole: viewer\nqueue: vision\n")
    page.get_by_role("button", name="Dry run").click()
    expect(page.get_by_role("heading", name="200 OK")).to_be_visible()
    text.fill("user: admin\nrole: viewer\nqueue: vision\n")
    page.get_by_role("button", name="Send POST").click()
    expect(page.get_by_role("heading", name="201 Created")).to_be_visible()
