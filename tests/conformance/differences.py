"""Writes docs/decisions/ text from the table of differences: python -m
tests.conformance.differences.
"""

from __future__ import annotations

from pathlib import Path

from tests.conformance.cases import Case, differences

DOCUMENT = Path(__file__).parents[2] / "docs" / "decisions" / "0010-differences-from-volcano.md"

INTRODUCTION = """# 10. Where a session differs from Volcano's

This page is generated from `tests/conformance/differences.json` by `.venv/bin/python -m
tests.conformance.differences`. A test keeps both the same. It fails on a difference that is not
listed, and on a listed one that no longer exists.

`tests/conformance/` holds two kinds of data: Volcano's own test scenarios, and what the real
Volcano did on generated scenarios. Our sessions decide the same, except here. Each line names the
scenario, what differs, the decided point ([decision 9](0009-scheduling-semantics.md)), and why.

Differences in evictions, and most of those in binds, were followed step by step: with Volcano's
steps, and without the one behaviour that the line names, the scenario comes out as ours does.
Differences in deserved follow from the exact fill. Other generated scenarios differ for the same
reasons, and for the decided points 5 (borrowing in backfill), 6 (a farther queue that keeps its
deserved comes before a nearer one that does not), 9 (limits of ancestors after the victims are
gone), 16 (`pods` in a queue's share; whole numbers) and 22.
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
        (
            f"| `{_plain(name)}` | {', '.join(entry.get('differs', ['outcome']))} | "
            f"{entry['decision']} | {entry['why']} |"
        )
        for name, entry in sorted(entries.items())
    ]
    return (
        "\n".join(
            [
                f"## {title}",
                "",
                "| scenario | differs in | decided | why |",
                "|---|---|---|---|",
                *rows,
                "",
            ]
        )
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
