"""The table of queue fields.

It has every field, and what cannot be derived from it says the same.
"""

from __future__ import annotations

from dataclasses import fields

import pytest

from dashboard.cli.queues.fields import LIMIT_FIELDS as CLI_LIMITS
from dashboard.cli.queues.fields import TEXT_FIELDS as CLI_FIELDS
from scheduler.admission.reading.queue import queue_manifest, read_queue
from scheduler.admission.reading.reader import Reader
from scheduler.domain.access import OWN_FIELDS, PARENTS_FIELDS
from scheduler.domain.queue_fields import (
    LIMIT_FIELDS,
    METADATA_FIELDS,
    PLAIN_FIELDS,
    QUEUE_FIELDS,
    TEXT_FIELDS,
    FieldKind,
    QueueField,
    stored_values,
    with_choices,
)
from scheduler.domain.queues import DequeueStrategy, QueueSpec, QueueState
from scheduler.domain.resources import Resources
from scheduler.models import Queue

SAMPLES = {
    FieldKind.NUMBER: 7,
    FieldKind.SECONDS: 120,
    FieldKind.LIMIT: 40,
    FieldKind.NAMES: "research,vision",
    FieldKind.TRUTH: False,
    FieldKind.AMOUNTS: Resources({"cpu": 2_000}),
    FieldKind.QUEUE: "team",
    FieldKind.WORD: "batch",
    FieldKind.LINE: "ml-platform",
    FieldKind.PARAGRAPH: "For nightly training.\nAsk before you use it.",
}
CHOSEN = {"dequeue_strategy": DequeueStrategy.FIFO, "state": QueueState.SUSPENDED}


def another(field: QueueField) -> object:
    return CHOSEN.get(field.name) or SAMPLES[field.kind]


def spec_of_samples() -> QueueSpec:
    values = {field.name: another(field) for field in QUEUE_FIELDS}
    return QueueSpec("train", labels={"a": "b"}, annotations={"c": "d"}, **values)


def ids(field: QueueField) -> str:
    return field.name


def test_every_field_of_a_queue_is_in_the_table_or_in_its_metadata():
    named = {field.name for field in QUEUE_FIELDS} | {"name", *METADATA_FIELDS}

    assert named == {field.name for field in fields(QueueSpec)}


@pytest.mark.parametrize("field", QUEUE_FIELDS, ids=ids)
def test_the_default_is_that_of_the_value(field: QueueField):
    assert getattr(QueueSpec("a"), field.name) == field.default


@pytest.mark.parametrize("field", PLAIN_FIELDS, ids=ids)
def test_the_table_has_a_column_with_room_for_it(field: QueueField):
    column = Queue._meta.get_field(field.name)

    if field in TEXT_FIELDS:
        assert column.max_length == field.most
    if field.kind is not FieldKind.AMOUNTS:
        assert column.default == getattr(field.default, "value", field.default)


def test_a_manifest_gives_back_every_field():
    spec = spec_of_samples()

    assert read_queue(queue_manifest(spec)).value.spec == spec


def test_what_is_stored_gives_back_every_plain_field():
    spec = spec_of_samples()
    stored = stored_values(spec)

    values = with_choices({field.name: stored[field.name] for field in PLAIN_FIELDS})

    assert values == {field.name: getattr(spec, field.name) for field in PLAIN_FIELDS}


def test_every_field_is_changed_by_somebody():
    assert {*PARENTS_FIELDS, *OWN_FIELDS, "state"} == {
        *METADATA_FIELDS,
        *(field.name for field in QUEUE_FIELDS),
    }


def test_vcctl_knows_the_same_texts():
    assert [(field.key, field.label) for field in CLI_FIELDS] == [
        (field.key, field.label) for field in TEXT_FIELDS
    ]
    assert [field.key for field in CLI_FIELDS if field.is_wide] == [
        field.key for field in TEXT_FIELDS if field.is_in_tree
    ]


def test_vcctl_knows_the_same_limits():
    assert [(field.key, field.name, field.label, field.help) for field in CLI_LIMITS] == [
        (field.key, field.name, field.label, field.help) for field in LIMIT_FIELDS
    ]


@pytest.mark.parametrize("field", LIMIT_FIELDS, ids=ids)
def test_a_limit_is_at_least_1(field: QueueField):
    manifest = {"metadata": {"name": "train"}, "spec": {field.key: 0}}

    (violation,) = read_queue(manifest).violations

    assert violation.rule_id == "limit_out_of_range"
    assert violation.field == f"spec.{field.key}"


@pytest.mark.parametrize("seconds", [None, 0, 300])
def test_a_queue_that_names_no_seconds_is_told_from_one_that_names_0(seconds: int | None):
    spec = QueueSpec("train", min_run_seconds=seconds)

    manifest = queue_manifest(spec)

    assert manifest["spec"].get("minRunSeconds") == seconds
    assert read_queue(manifest).value.spec.min_run_seconds == seconds


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-1, "spec.minRunSeconds is -1; it must be from 0 to 31536000."),
        (31_536_001, "spec.minRunSeconds is 31536001; it must be from 0 to 31536000."),
        ("5m", "spec.minRunSeconds must be a whole number from 0 to 31536000, not text (5m)."),
        ("", "spec.minRunSeconds is empty. Enter 0 to 31536000."),
    ],
)
def test_seconds_are_a_whole_number_in_a_range(value: object, problem: str):
    manifest = {"metadata": {"name": "train"}, "spec": {"minRunSeconds": value}}

    reading = read_queue(manifest)

    assert [violation.message for violation in reading.violations] == [problem]
    assert reading.violations[0].field == "spec.minRunSeconds"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\tb", "spec.owner has a control character (U+0009); plain text is expected."),
        ("a\x1b[31mb", "spec.owner has a control character (U+001B); plain text is expected."),
        ("a\nb", "spec.owner has a control character (U+000A); plain text is expected."),
        ("x" * 21, "spec.owner has 21 characters, 20 are allowed."),
        (7, "spec.owner must be text, not a number (7)."),
    ],
)
def test_a_line_is_plain_text_and_not_too_long(text: object, problem: str):
    reader = Reader(queue="a")

    assert reader.plain_text(text, "spec.owner", longest=20) == ""
    assert [violation.message for violation in reader.violations] == [problem]


def test_a_paragraph_may_have_line_breaks():
    reader = Reader(queue="a")

    text = reader.plain_text(" one\r\ntwo\n", "spec.description", longest=20, with_breaks=True)

    assert (text, reader.violations) == ("one\ntwo", [])
