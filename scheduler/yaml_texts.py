"""Values as YAML that every reader takes for the same ones.

PyYAML writes what a reader of YAML 1.1 understands. To kubectl and others, which read YAML 1.2,
the plain words `1e3` and `08` are numbers, and a queue may be called so: such texts are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

NUMBER_OF_YAML_1_2: Final = re.compile(
    r"^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$"
)
_WIDTH: Final = 120


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, value: str) -> Any:
    """Text of several lines is written as a block."""
    style = None
    if "\n" in value:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER_OF_YAML_1_2, list("-+.0123456789"))


def to_yaml(value: Any) -> str:
    return to_yaml_documents([value])


def to_yaml_documents(values: Iterable[Any]) -> str:
    return yaml.dump_all(
        values,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_WIDTH,
    )
