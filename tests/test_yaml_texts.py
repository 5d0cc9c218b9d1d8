"""YAML that is written means the same to readers of YAML 1.1 and 1.2."""

from __future__ import annotations

import pytest
import yaml

from dashboard.cli import output
from scheduler.yaml_texts import to_yaml

NUMBERS_TO_KUBECTL = ("1e3", "08", "0o17", "-5E+2", ".5", "1.", "+7", "12e03")
WORDS = ("e3", "1e", "a08", "1.2.3", "10Gi", "500m")


@pytest.mark.parametrize("write", [to_yaml, output.to_yaml])
@pytest.mark.parametrize("name", NUMBERS_TO_KUBECTL)
def test_a_name_that_others_read_as_a_number_is_quoted(write, name: str):
    text = write({"name": name, name: 1})

    assert text == f"name: '{name}'\n'{name}': 1\n"
    assert yaml.safe_load(text) == {"name": name, name: 1}


@pytest.mark.parametrize("write", [to_yaml, output.to_yaml])
@pytest.mark.parametrize("word", WORDS)
def test_a_word_and_a_quantity_stay_plain(write, word: str):
    assert write({"name": word}) == f"name: {word}\n"


@pytest.mark.parametrize("write", [to_yaml, output.to_yaml])
def test_numbers_stay_numbers(write):
    assert write({"weight": 3, "part": 0.5}) == "weight: 3\npart: 0.5\n"
