"""The figures on how hard code is to read, counted in small texts whose answers can be seen."""

from __future__ import annotations

import subprocess

import pytest

from tests.tools import metrics

PYTHON = '''\
"""Of a module."""


def one(values):
    # a comment is no token
    return [value for value in values]


async def two_words(flag):
    return 1 if flag else 2
'''


def counted(text: str) -> metrics.Python:
    found = metrics.Python()
    found.add(text)
    return found


def test_tokens_are_counted_on_the_line_where_they_start():
    text = "x = call(\n    1,  # why\n)\n\ny = '''a\nb'''\n"

    assert metrics.tokens_of_lines(text) == [4, 2, 1, 3]


def test_statements_comprehensions_and_ternaries_are_counted():
    found = counted(PYTHON)

    assert (found.statements, found.comprehensions, found.ternaries) == (5, 1, 1)


def test_functions_are_measured_from_their_first_line_to_their_last():
    found = counted(PYTHON)

    assert found.function_names == ["one", "two_words"]
    assert found.function_lengths == [3, 2]


@pytest.mark.parametrize(
    ("name", "answer"),
    [("fill", True), ("_fill", True), ("__init__", True), ("may_start", False), ("_of_all", False)],
)
def test_a_leading_underscore_makes_no_second_word(name: str, answer: bool):
    assert metrics.is_one_word(name) is answer


def test_lengths_are_of_lines_with_something_on_them():
    assert metrics.line_lengths("ab\n\n   \nabc\n") == [2, 3]


def test_a_share_is_of_lines_that_are_longer_than_the_limit():
    assert metrics.share_over([100, 101, 140, 99], 100) == 0.5
    assert metrics.share_over([], 100) == 0


def test_nine_of_ten_values_are_at_or_below_the_90th_percentile():
    assert metrics.percentile(range(1, 11), 0.9) == 10
    assert metrics.percentile([1] * 95 + [50] * 5, 0.9) == 1
    assert metrics.percentile([], 0.9) == 0


def test_a_field_is_spelled_out_as_a_name_or_as_a_text_of_its_own():
    texts = [
        "queue.guarantee\n",
        "row['guarantee']\n",
        "guarantee_of = 1\n",
        "# guarantee\n",
        "say = 'a guarantee'\n",
    ]

    assert metrics.files_that_spell_out("guarantee", texts) == 2


def test_folders_are_counted_by_the_modules_directly_in_them():
    paths = ["a/__init__.py", "a/x.py", "a/y.py", "a/b/z.py", "manage.py"]

    assert metrics.fullest_folders(paths)[0] == ("a", 2)


def test_migrations_and_tests_are_no_code():
    files = {
        "scheduler/apps.py": b"",
        "scheduler/migrations/0001_initial.py": b"",
        "tests/test_words.py": b"",
        "scheduler/notes.md": b"",
    }

    assert list(metrics.python_files(files, metrics.CODE)) == ["scheduler/apps.py"]


def test_templates_are_measured_by_their_longest_lines():
    files = {
        "templates/a.html": b"<p>\n" + b"x" * 150 + b"\n" + b"y" * 250,
        "templates/b.txt": b"z",
    }

    figures = metrics.figures_of_templates(files)

    assert figures["template lines over 140 characters"] == "66.7 %"
    assert figures["template lines over 200 characters"] == "33.3 %"
    assert figures["longest template line"] == "250"


def test_vendored_files_are_counted_apart_and_those_for_tests_not_at_all():
    files = {
        "static/css/a.css": b"12",
        "static/js/a.js": b"123",
        "static/vendor/x/x.js": b"1234",
        "static/vendor/x/x.css": b"12345",
        "static/vendor/axe-core/axe.min.js": b"123456",
    }

    assert metrics.figures_of_front_end(files) == {
        "bytes of CSS, own": "2",
        "bytes of CSS, vendored": "5",
        "bytes of JavaScript, own": "3",
        "bytes of JavaScript, vendored": "4",
    }


def test_a_revision_is_measured_beside_the_working_tree(tmp_path, monkeypatch):
    (tmp_path / "scheduler").mkdir()
    module = tmp_path / "scheduler" / "queues.py"
    module.write_text("a = 1\n")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    module.write_text("a = 1\nb = 2\n")
    monkeypatch.setattr(metrics, "ROOT", tmp_path)
    shown: list[str] = []

    metrics.main(["--compare", "HEAD"], shown.append)

    (lines,) = [line for line in shown[0].splitlines() if line.startswith("lines with something")]
    assert lines.split()[-3:] == ["2", "1", "0"]
