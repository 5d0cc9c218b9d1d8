"""Writes docs/decisions/ text from the table of differences: python -m tests.conformance.differences."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.cases import Case, differences

DOCUMENT = Path(__file__).parents[2] / "docs" / "decisions" / "0010-differences-from-volcano.md"

INTRODUCTION = """# 10. Where a session differs from Volcano's

Generated from `tests/conformance/differences.json` by `.venv/bin/python -m tests.conformance.differences`; a test keeps both the same, fails on a
difference that is not listed, and fails on a listed one that is none any more.

Volcano's own test scenarios and what the real Volcano was seen to do on generated ones are data under `tests/conformance/`. Ours decides
the same, except here. Each line names the scenario, what differs, the decided point (see `0009-scheduling-semantics.md`), and why. The
differences in evictions and most of those in binds were followed step by step: with Volcano's steps and only the behaviour that the line names
taken out, the scenario comes out as ours does. Those in deserved follow from the figures of the exact fill.
Other scenarios of the same make differ for the same reasons, and for decided points 5 (borrowing in backfill), 6 (a farther queue that keeps its
deserved before a nearer one that does not), 9 (limits of ancestors after the victims are gone), 16 (`pods` in a queue's share; whole numbers) and 22.
"""


def document() -> str:
    tables = differences()
    parts = [
        INTRODUCTION,
        _section("Generated scenarios, against the observed outcome", tables["differential"]),
        _section("Volcano's own test cases", tables["scheduling"]),
        _not_runnable(tables["notRunnable"]),
    ]
    return "\n".join(parts)


def _section(title: str, entries: dict[str, Case]) -> str:
    rows = [
        f"| `{_plain(name)}` | {', '.join(entry.get('differs', ['outcome']))} | {entry['decision']} | {entry['why']} |"
        for name, entry in sorted(entries.items())
    ]
    return (
        "\n".join([f"## {title}", "", "| scenario | differs in | decided | why |", "|---|---|---|---|", *rows, ""])
        if rows
        else f"## {title}\n\nNone.\n"
    )


def _not_runnable(entries: dict[str, str]) -> str:
    rows = [f"| `{_plain(name)}` | {why} |" for name, why in sorted(entries.items())]
    return "\n".join(["## Cases that are not run", "", "| case | why |", "|---|---|", *rows, ""])


def _plain(name: str) -> str:
    return name.replace("|", "/")


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(parents=True, exist_ok=True)
    DOCUMENT.write_text(document())
