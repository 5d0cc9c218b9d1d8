"""Manifests from files, folders and standard input, each with the place it came from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.cli.files.lines import Place
from dashboard.cli.problems import usage

_ENDINGS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Source:
    name: str  # for words
    text: str


def read_text(path: Path | None) -> str:
    """A file, or standard input for None."""
    try:
        if path is None:
            return sys.stdin.read()
        return path.read_text()
    except OSError as error:
        raise usage(f"{path or 'Standard input'} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise usage(f"{path or 'Standard input'} is no text in UTF-8.") from None


def read_sources(names: Sequence[str]) -> list[Source]:
    """In the order given; the files of a folder, and of folders in it, by name."""
    if not names:
        raise usage("Which files? Name them with -f: a file, a folder, or - for standard input.")
    if names.count("-") > 1:
        raise usage("Standard input can be read only once; give -f - once.")
    found: list[Source] = []
    for name in names:
        for source in _find_sources(name):
            found.append(source)
    return found


def _find_sources(name: str) -> Iterable[Source]:
    if name == "-":
        return [Source("standard input", read_text(None))]
    path = Path(name)
    if not path.is_dir():
        return [Source(name, read_text(path))]
    files = sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())
    if not files:
        raise usage(f"The folder {name} has no file that ends in {', '.join(_ENDINGS)}.")
    sources: list[Source] = []
    for file in files:
        sources.append(Source(str(file), read_text(file)))
    return sources


def located_documents(sources: Iterable[Source]) -> list[tuple[Place, Any]]:
    """Every object with its place; the items of a List one by one, as the server counts them."""
    found: list[tuple[Place, Any]] = []
    sources = list(sources)
    for source in sources:
        documents = [document for document in _parse_source(source) if document is not None]
        for number, document in enumerate(documents):
            found += _located_in(source, number, document)
    if not found:
        raise usage(f"There is no object in {', '.join(source.name for source in sources)}.")
    return found


def _located_in(source: Source, number: int, document: Any) -> list[tuple[Place, Any]]:
    items = document
    if isinstance(document, dict) and document.get("kind") == "List":
        items = document.get("items")
    if not isinstance(items, list):
        return [(Place(source.name, source.text, number), document)]
    found = []
    for index, item in enumerate(items):
        found.append((Place(source.name, source.text, number, index), item))
    return found


def documents_of(sources: Iterable[Source]) -> list[Any]:
    documents: list[Any] = []
    for _, document in located_documents(list(sources)):
        documents.append(document)
    return documents


def _parse_source(source: Source) -> list[Any]:
    import yaml

    try:
        return list(yaml.load_all(source.text, Loader=_yaml_loader()))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None:
            where = f", line {mark.line + 1}"
        else:
            where = ""
        raise usage(
            f"{source.name}{where} is not YAML: "
            f"{getattr(error, 'problem', None) or 'it cannot be read'}."
        ) from None


def _yaml_loader() -> Any:
    """Without dates: a text that looks like one stays the text it is, as in Kubernetes."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    resolvers = {}
    for letter, known in yaml.SafeLoader.yaml_implicit_resolvers.items():
        resolvers[letter] = [pair for pair in known if pair[0] != "tag:yaml.org,2002:timestamp"]
    Loader.yaml_implicit_resolvers = resolvers
    return Loader
