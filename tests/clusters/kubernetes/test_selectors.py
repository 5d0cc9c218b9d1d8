"""Label selectors: which objects they mean."""

from __future__ import annotations

import pytest

from scheduler.clusters.kubernetes.selectors import selects

LABELS = {"app": "web", "tier": "front"}


def expression(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "is_meant"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {"missing": ""}}, False),
        (expression("app", "In", "web", "api"), True),
        (expression("app", "In", "api"), False),
        (expression("app", "NotIn", "api"), True),
        (expression("app", "NotIn", "web"), False),
        (expression("missing", "NotIn", "web"), True),
        (expression("app", "Exists"), True),
        (expression("missing", "Exists"), False),
        (expression("missing", "DoesNotExist"), True),
        (expression("app", "DoesNotExist"), False),
        (expression("app", "Unheard", "web"), False),
        ({"matchLabels": {"app": "web"}, **expression("tier", "In", "back")}, False),
    ],
)
def test_a_selector_means_what_kubernetes_means(selector, is_meant):
    assert selects(selector, LABELS) is is_meant
