"""Counts and groups of jobs as shown: beside the list, as its groups, and in the API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from dashboard.forms.query import Query
from dashboard.present.jobs import amounts_text
from scheduler.domain.job_groups import FACETS, JobField, JobGroup, read_shape
from scheduler.domain.plans import counted
from scheduler.selectors.jobs.groups import Facets

TITLES = {
    JobField.STATE: "State",
    JobField.QUEUE: "Queue",
    JobField.USER: "User",
    JobField.REASON: "Why it waits",
    JobField.NAMESPACE: "Namespace",
    JobField.PRIORITY: "Priority",
    JobField.SHAPE: "Shape",
}
_NO_VALUE = {JobField.USER: "nobody", JobField.REASON: "does not wait"}
_SHOWN = 8
_PLAIN = re.compile(r"[^\s\",]+")
Url = Callable[[str], str]


def filter_word(by: JobField, value: str) -> str:
    """What finds the jobs with this value, in the words of the query box; empty for no value."""
    if not value:
        return ""
    if by is JobField.PRIORITY:
        return f"priority={value}"
    if not _PLAIN.fullmatch(value):
        value = f'"{value}"'
    return f"{by.value}:{value}"


def value_title(by: JobField, value: str) -> str:
    if by is JobField.SHAPE:
        pods, request = read_shape(value)
        return f"{counted(pods, 'pod')} · {amounts_text(request)}"
    if by is JobField.STATE:
        return value.capitalize()
    return value or _NO_VALUE.get(by, "none")


def present_facets(facets: Facets, query: Query, url: Url, group_url: Url) -> list[dict[str, Any]]:
    """`url` gives the page with another query, `group_url` the groups by a field."""
    shown = []
    for by in FACETS:
        counts = facets[by]
        if not counts:
            continue
        values = sorted(counts, key=lambda value: (-counts[value], value))
        lines = []
        for value in values[:_SHOWN]:
            lines.append(_facet_line(by, value, counts[value], query, url))
        entry = {
            "key": by.value,
            "title": TITLES[by],
            "lines": lines,
            "more": max(0, len(values) - _SHOWN),
            "all_url": group_url(by.value),
        }
        shown.append(entry)
    return shown


def _facet_line(by: JobField, value: str, count: int, query: Query, url: Url) -> dict[str, Any]:
    word = filter_word(by, value)
    present = _places_of(word, query)
    if present:
        target = url(query.without(present[0]))
    elif word:
        target = url(with_word(query, word))
    else:
        target = ""
    return {
        "title": value_title(by, value),
        "count": grouped_digits(count),
        "chosen": bool(present),
        "url": target,
    }


def _places_of(word: str, query: Query) -> list[int]:
    if not word:
        return []
    return [place for place, term in enumerate(query.terms) if term.text == word]


def with_word(query: Query, word: str) -> str:
    """The query as text, with one word more."""
    words = [term.text for term in query.terms]
    if word not in words:
        words.append(word)
    return " ".join(words)


def present_groups(
    groups: Iterable[JobGroup], by: JobField, query: Query, url: Url
) -> list[dict[str, Any]]:
    shown = []
    for group in groups:
        word = filter_word(by, group.value)
        target = ""
        if word:
            target = url(with_word(query, word))
        line = {
            "title": value_title(by, group.value),
            "url": target,
            "jobs": grouped_digits(group.jobs),
            "waiting": grouped_digits(group.waiting),
            "pods": grouped_digits(group.pods),
            "request": amounts_text(group.request),
            "oldest": group.oldest,
        }
        shown.append(line)
    return shown


def group_object(
    group: JobGroup, by: JobField, when: Callable[[Any], str | None]
) -> dict[str, Any]:
    return {
        "value": group.value,
        "title": value_title(by, group.value),
        "query": filter_word(by, group.value),
        "jobs": group.jobs,
        "waiting": group.waiting,
        "pods": group.pods,
        "request": group.request.to_quantities(),
        "oldestWaitSince": when(group.oldest),
    }


def facet_objects(facets: Facets) -> list[dict[str, Any]]:
    objects = []
    for by in FACETS:
        counts = facets[by]
        values = sorted(counts, key=lambda value: (-counts[value], value))
        entries = []
        for value in values:
            entry = {"value": value, "query": filter_word(by, value), "jobs": counts[value]}
            entries.append(entry)
        objects.append({"field": by.value, "values": entries})
    return objects


def grouped_digits(number: int) -> str:
    """A narrow space groups digits, as in every language."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
