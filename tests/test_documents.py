"""Texts from outside are read into plain values, and hostile ones are refused with a sentence."""

import pytest

from scheduler.documents import POLICY_LIMIT, DocumentError, read_document

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(8)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 1\nb: [x, 2]", {"a": 1, "b": ["x", 2]}, id="yaml"),
        pytest.param('{"a": 1, "b": [true, null]}', {"a": 1, "b": [True, None]}, id="json"),
        pytest.param("{a: b}", {"a": "b"}, id="flow yaml"),
        pytest.param("when: 2026-01-31", {"when": "2026-01-31"}, id="a date stays a text"),
        pytest.param(
            "mode: 010\nstate: off\nempty:",
            {"mode": "010", "state": "off", "empty": None},
            id="no octal, no yes and no",
        ),
        pytest.param("cpu: 1.10", {"cpu": "1.10"}, id="a point keeps its digits"),
        pytest.param('{"cpu": 1.10}', {"cpu": "1.10"}, id="in json too"),
        pytest.param("a: '1'", {"a": "1"}, id="a quoted number is a text"),
        pytest.param("1: x", {"1": "x"}, id="a key is a text"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_document_is_read_as_plain_values(text, value):
    assert read_document(text) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(BOMB, "line 1, column 4: anchors and aliases", id="bomb"),
        pytest.param(
            "a: !!python/object/apply:os.system [ls]", "tags (!) are not read", id="python tag"
        ),
        pytest.param("a: !!int zz", "tags (!) are not read", id="tag"),
        pytest.param("a: " + "[" * 200, "nested more than 40 deep", id="deep yaml"),
        pytest.param("[" * 100_000, "nested too deeply", id="deep json"),
        pytest.param(
            "a: 1\nb: 2\na: 3", "line 3, column 1: the key “a” is given twice", id="twice in yaml"
        ),
        pytest.param('{"a": 1, "a": 2}', "the key “a” is given twice", id="twice in json"),
        pytest.param("? [a]\n: 1", "a key must be a word", id="a list as key"),
        pytest.param('{"a": NaN}', "NaN is not a number that can be used", id="nan"),
        pytest.param(
            '{"a": ' + "9" * 5000 + "}", "more digits than any number", id="endless number"
        ),
        pytest.param("a: b: c", "line 1, column 5: this is not YAML", id="broken yaml"),
        pytest.param('{"a": 1', "line 1, column 8: this is not JSON", id="broken json"),
        pytest.param("a: 1\n---\nb: 2", "another document", id="two documents"),
        pytest.param("a: \x00", "this is not YAML", id="control characters"),
    ],
)
def test_a_hostile_or_broken_text_is_refused_with_its_place(text, complaint):
    with pytest.raises(DocumentError) as refusal:
        read_document(text)

    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_text_past_the_limit_is_refused_before_it_is_read():
    with pytest.raises(DocumentError, match="more than the"):
        read_document("a: 1 " + "#" * POLICY_LIMIT, POLICY_LIMIT)
