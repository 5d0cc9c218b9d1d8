"""What the real Volcano was seen to do on generated scenarios: ours does the same, but for
differences that a decided point explains.
"""

import pytest

from tests.conformance.cases import differences, differential_cases, run
from tests.conformance.comparing import differing
from tests.conformance.differences import DOCUMENT, document

CASES = differential_cases()
EXPLAINED = differences()["differential"]


def found_differences(name):
    (session,) = run(CASES[name])
    return differing(CASES[name], session.outcome)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_scenario_differs_from_volcano_only_where_a_decision_says_so(name):
    found = found_differences(name)

    assert sorted(found) == sorted(EXPLAINED.get(name, {}).get("differs", [])), found


def test_every_explanation_belongs_to_a_scenario():
    assert set(EXPLAINED) <= set(CASES)
    assert all(
        entry["decision"] and entry["why"] and entry["differs"] for entry in EXPLAINED.values()
    )


def test_the_document_lists_exactly_these_differences():
    assert DOCUMENT.read_text() == document(), "run: python -m tests.conformance.differences"
