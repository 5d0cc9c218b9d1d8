"""Files that say how to reach clusters, merged as kubectl does it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class CredentialsError(Exception):
    """There is no way to the API server. The message names the file and the field."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One file, or several that count as one: of entries with the same name the first counts."""

    files: tuple[Section, ...]

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Kubeconfig:
        """Of several files, those that do not exist are passed over. Raises `CredentialsError`."""
        found = [path for path in paths if path.exists()]
        if not found:
            raise CredentialsError(f"{_listed(paths)} does not exist.")
        return cls(tuple(Section.of_file(path) for path in found))

    def current_context(self) -> str:
        for file in self.files:
            if name := file.text("current-context"):
                return name
        raise self.problem("current-context", "is not set, and no context was asked for")

    def entry(self, plural: str, name: str, singular: str) -> Section:
        """The entry of this name in one of the lists: clusters, users, contexts."""
        for file in self.files:
            if found := file.find_entry(plural, name, singular):
                return found
        if not any(file.has(plural) for file in self.files):
            raise self.problem(plural, "is missing or is no list")
        raise self.problem(plural, f"has no entry called {name}")

    def problem(self, key: str, problem: str) -> CredentialsError:
        names = _listed([section.file for section in self.files])
        return CredentialsError(f"{names}: {key} {problem}.")


def _listed(paths: Sequence[Path]) -> str:
    return ":".join(str(path) for path in paths)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a kubeconfig that can name itself: `file`, and `path` within it."""

    file: Path
    path: str
    values: Mapping[str, Any]

    @classmethod
    def of_file(cls, path: Path) -> Section:
        text = read_text(path)
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise CredentialsError(f"{path} is no YAML: {_first_line(error)}") from error
        if not isinstance(values, dict):
            raise CredentialsError(f"{path} is no kubeconfig: it must be a mapping.")
        return cls(path, "", values)

    def problem(self, key: str, problem: str) -> CredentialsError:
        return CredentialsError(f"{self.file}: {self._path_to(key)} {problem}.")

    def _path_to(self, key: str) -> str:
        if not self.path:
            return key
        return f"{self.path}.{key}"

    def has(self, key: str) -> bool:
        return self.values.get(key) not in (None, "", {})

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.values.get(key)
        if value is None or value == "":
            if required:
                raise self.problem(key, "is missing")
            return ""
        if not isinstance(value, str):
            raise self.problem(key, f"must be text, not {type(value).__name__}")
        return value

    def truth(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.problem(key, "must be true or false")
        return value

    def section(self, key: str) -> Section:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.problem(key, "must be a mapping")
        return Section(self.file, self._path_to(key), value)

    def find_entry(self, plural: str, name: str, singular: str) -> Section | None:
        entries = self.values.get(plural) or []
        if not isinstance(entries, list):
            raise self.problem(plural, "is missing or is no list")
        for index, item in enumerate(entries):
            if isinstance(item, dict) and item.get("name") == name:
                return Section(self.file, f"{plural}[{index}]", item).section(singular)
        return None

    def beside(self, name: str) -> Path:
        """A path of the kubeconfig: a relative one begins at its directory."""
        return self.file.parent / Path(name).expanduser()

    def pem(self, key: str) -> str:
        """From `<key>-data` in base64, else from the file that `<key>` names."""
        data = self.text(f"{key}-data")
        if data:
            return self._decoded(f"{key}-data", data)
        file = self.text(key)
        if not file:
            return ""
        path = self.beside(file)
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.problem(key, f"names {path}, which cannot be read: {error}") from error

    def _decoded(self, key: str, data: str) -> str:
        try:
            return base64.b64decode(data, validate=False).decode("ascii")
        except (binascii.Error, ValueError) as error:
            raise self.problem(key, "is no PEM in base64") from error


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CredentialsError(f"{path} does not exist.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"{path} cannot be read: {error}") from error


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())
