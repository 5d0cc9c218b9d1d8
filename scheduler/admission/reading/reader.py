"""Reading objects that anybody may have written.

Whatever is in them, the answer is values and violations, never an exception.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from scheduler.admission.violations import Notice, Violation
from scheduler.domain.resources import QuantityError, Resources, parse_quantity

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_LONGEST_NAME = 253
_LONGEST_LABEL = 63
_MOST_ENTRIES = 1000
_MOST_NAMED = 50  # fields of one object that nobody knows; the rest is counted
_LONGEST_MEANT = 64  # characters of a field that may be meant to be another
_LONGEST_TEXTS = 256 * 1024
INT32 = 2**31 - 1

_MISSING = object()


def is_label(text: str) -> bool:
    return len(text) <= _LONGEST_LABEL and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """A DNS-1123 subdomain: lower-case words joined by dots, 253 characters at most."""
    return len(text) <= _LONGEST_NAME and all(_LABEL.fullmatch(part) for part in text.split("."))


def is_qualified(text: str) -> bool:
    """A label key or resource name: "cpu", "nvidia.com/gpu"."""
    prefix, slash, name = text.rpartition("/")
    named = len(name) <= _LONGEST_LABEL and _QUALIFIED.fullmatch(name) is not None
    return named and (not slash or is_subdomain(prefix))


def shown(value: object, limit: int = 60) -> str:
    """A value as an error message may show it: short, and printable whatever it is."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, (dict, list)):
        text = type(value).__name__
    else:
        text = repr(value)
    characters = []
    for character in text[: limit + 1]:
        characters.append(character if character.isprintable() else "?")
    text = "".join(characters)
    if len(text) <= limit:
        return text
    return text[:limit] + "…"


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """PostgreSQL keeps no NUL, and half a surrogate pair is no text at all."""
    return _UNSTORABLE.search(text) is None


def _path_to(here: str, key: object) -> str:
    if not here:
        return shown(key)
    return f"{here}.{shown(key)}"


def _can_be_kept(value: object) -> bool:
    """All of it. Looked at without its places, which are of interest only where it cannot."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            if _UNSTORABLE.search(part):
                return False
        elif isinstance(part, Mapping):
            waiting += part.keys()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, float) and not math.isfinite(part):
            return False
    return True


@dataclass(slots=True)
class Reader:
    """Collects what is wrong and what is odd while an object is read.

    `queue` is named in each violation.
    """

    queue: str = ""
    violations: list[Violation] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    def refuse(self, rule_id: str, path: str, message: str, fix: str = "") -> None:
        self.violations.append(Violation(rule_id, self.queue, path, message, fix))

    def note(self, code: str, path: str, message: str) -> None:
        self.notices.append(Notice(code, self.queue, message, path))

    def wrong_type(self, path: str, value: object, wanted: str) -> None:
        self.refuse(
            "invalid_value",
            path,
            f"{path or 'The body'} must be {wanted}, not {_kind_in_words(value)}.",
            f"write {wanted}",
        )

    def mapping(self, value: object, path: str) -> Mapping[str, object]:
        """An object; empty where it is left out or is something else."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong_type(path, value, "an object")
            return {}
        found: dict[str, object] = {}
        for key, item in value.items():
            if self._is_key(key, path):
                found[key] = item
        return found

    def _is_key(self, key: object, path: str) -> bool:
        if isinstance(key, str) and is_storable(key):
            return True
        self.refuse("invalid_value", path, f"{path} has the key {shown(key)}, which is not text.")
        return False

    def whole(self, value: object) -> None:
        """Check that everything in the object can be stored, however deep it is.

        It is for objects of which parts are kept as they came.
        """
        if not _can_be_kept(value):
            self._point_out_unstorable(value)

    def _point_out_unstorable(self, value: object) -> None:
        waiting: list[tuple[str, object]] = [("", value)]
        while waiting:
            here, part = waiting.pop()
            if isinstance(part, Mapping):
                for key, item in part.items():
                    if self._is_key(key, here):
                        waiting.append((_path_to(here, key), item))
            elif isinstance(part, list):
                waiting += [(f"{here}[{index}]", item) for index, item in enumerate(part)]
            elif not _can_be_kept(part):
                self.refuse(
                    "invalid_value", here, f"{here} has what cannot be stored ({shown(part)})."
                )

    def items(self, value: object, path: str) -> list[object]:
        if value is None:
            return []
        if not isinstance(value, list):
            self.wrong_type(path, value, "a list")
            return []
        return value

    def text(
        self,
        value: object,
        path: str,
        default: str = "",
        longest: int = _LONGEST_NAME,
    ) -> str:
        if value is None:
            return default
        if not isinstance(value, str):
            self.wrong_type(path, value, "text")
            return default
        if not is_storable(value):
            self.refuse(
                "invalid_value",
                path,
                f"{path} has characters that cannot be stored ({shown(value)}).",
            )
            return default
        if len(value) > longest:
            self.refuse(
                "too_long", path, f"{path} has {len(value)} characters, {longest} are allowed."
            )
            return default
        return value

    def plain_text(
        self,
        value: object,
        path: str,
        *,
        longest: int,
        with_breaks: bool = False,
    ) -> str:
        """Text for people to read, without spaces around it. Line breaks only `with_breaks`."""
        text = self.text(value, path, longest=longest).strip()
        allowed = ""
        if with_breaks:
            allowed = "\n"
        for character in text.replace("\r\n", "\n"):
            if unicodedata.category(character) == "Cc" and character not in allowed:
                code = f"U+{ord(character):04X}"
                message = f"{path} has a control character ({code}); plain text is expected."
                self.refuse("invalid_value", path, message, "take the character out")
                return ""
        return text.replace("\r\n", "\n")

    def truth(self, value: object, path: str, default: bool) -> bool:
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong_type(path, value, "true or false")
            return default
        return value

    def number(
        self,
        value: object,
        path: str,
        default: int,
        *,
        least: int = 0,
        most: int = INT32,
        rule_id: str = "number_out_of_range",
    ) -> int:
        """A whole number in a range; the default where it is left out or wrong."""
        if value is None:
            return default
        if isinstance(value, str) and not value.strip():
            self.refuse("invalid_value", path, f"{path} is empty. Enter {least} to {most}.")
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong_type(path, value, f"a whole number from {least} to {most}")
            return default
        if not least <= value <= most:
            self.refuse(
                rule_id,
                path,
                f"{path} is {value}; it must be from {least} to {most}.",
                f"write a number from {least} to {most}",
            )
            return default
        return value

    def choice(
        self,
        value: object,
        path: str,
        allowed: Collection[str],
        default: str,
        rule_id: str,
    ) -> str:
        if value is None or value == "":
            return default
        if isinstance(value, str) and value in allowed:
            return value
        wanted = ", ".join(allowed)
        if isinstance(value, str):
            near = difflib.get_close_matches(value, allowed, 1, 0.6)
        else:
            near = []
        if near:
            fix = f"write {near[0]}"
        else:
            fix = f"write one of {wanted}"
        self.refuse(rule_id, path, f"{path} is {shown(value)}; it must be one of {wanted}.", fix)
        return default

    def name(self, value: object, path: str, *, required: bool = True) -> str:
        """A DNS-1123 subdomain, as Kubernetes names things. "" where it is left out."""
        text = self.text(value, path, longest=10 * _LONGEST_NAME)
        if not text:
            if required and (value is None or value == ""):
                self.refuse("name_required", path, f"{path} must be given.")
            return ""
        if not is_subdomain(text):
            rule = (
                "must be lower-case letters, digits, - and ., begin and end with a letter or "
                "digit, and have at most 253 characters"
            )
            self.refuse(
                "invalid_name", path, f"{path} is {shown(text)}; a name {rule}.", _tidy_text(text)
            )
        return text

    def texts(self, value: object, path: str) -> dict[str, str]:
        """A map of text to text, such as annotations."""
        given = self.mapping(value, path)
        if (
            sum(len(key) + len(text) for key, text in given.items() if isinstance(text, str))
            > _LONGEST_TEXTS
        ):
            self.refuse("too_long", path, f"{path} is larger than {_LONGEST_TEXTS // 1024} KiB.")
            return {}
        found: dict[str, str] = {}
        for key, text in given.items():
            found[key] = self.text(text, f"{path}[{shown(key)}]", longest=_LONGEST_TEXTS)
        return found

    def labels(self, value: object, path: str) -> dict[str, str]:
        labels = self.texts(value, path)
        for key, text in labels.items():
            if not is_qualified(key) or (
                text and not (len(text) <= _LONGEST_LABEL and _QUALIFIED.fullmatch(text))
            ):
                self.refuse(
                    "invalid_label",
                    path,
                    f"{path} has {shown(key)}: {shown(text)}, which is not a Kubernetes label.",
                )
        return labels

    def resources(self, value: object, path: str) -> Resources:
        """Quantities by resource name.

        One that cannot be read is a violation of its own, and left out.

        Negative ones are read.
        """
        given = self.mapping(value, path)
        if len(given) > _MOST_ENTRIES:
            self.refuse(
                "too_long",
                path,
                f"{path} names {len(given)} resources, {_MOST_ENTRIES} are allowed.",
            )
            return Resources()
        return Resources(self._read_amounts(given, path))

    def _read_amounts(self, given: Mapping[str, object], path: str) -> Iterator[tuple[str, int]]:
        for resource, quantity in given.items():
            if not is_qualified(resource):
                self.refuse(
                    "invalid_resource_name",
                    path,
                    f"{path} names “{shown(resource)}”, which is not a resource name.",
                )
                continue
            try:
                yield resource, parse_quantity(resource, quantity)
            except QuantityError as error:
                where = f"{path}.{resource}"
                self.refuse(
                    "invalid_quantity",
                    where,
                    f"{where}: {shown(quantity)} {error.problem}.",
                    _quantity_fix(error.problem),
                )

    def unknown_fields(
        self,
        given: Mapping[str, object],
        known: Collection[str],
        path: str,
        fate: str = "ignored",
        elsewhere: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        """`fate` says what becomes of such a field.

        `elsewhere` are the fields of other parts, where it may belong.
        """
        unknown = [key for key in given if key not in known]
        for key in unknown[:_MOST_NAMED]:
            if len(key) <= _LONGEST_MEANT:
                near = difflib.get_close_matches(key, known, 1, 0.75)
            else:
                near = []
            meant = [f"{part}.{key}" for part, fields in elsewhere.items() if key in fields] or near
            if meant:
                hint = f"; did you mean {meant[0]}?"
            else:
                hint = ""
            if path:
                where = f"{path}.{shown(key)}"
            else:
                where = shown(key)
            self.note("unknown_field", where, f"{where} is not known and was {fate}{hint}")
        if len(unknown) > _MOST_NAMED:
            self.note(
                "unknown_field",
                path,
                f"{len(unknown) - _MOST_NAMED} more fields are not known and were {fate}",
            )

    def unused_fields(
        self,
        given: Mapping[str, object],
        unused: Collection[str],
        path: str,
    ) -> None:
        for key in unused:
            if given.get(key) is not None:
                self.note(
                    "unused_field",
                    f"{path}.{key}",
                    f"{path}.{key} is known but not used here and was ignored",
                )


def _kind_in_words(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str) and not value.strip():
        return "empty text"
    return f"{_kind_of(value)} ({shown(value)})"


def _kind_of(value: object) -> str:
    for kind, word in _KINDS.items():
        if isinstance(value, kind):
            return word
    return type(value).__name__


_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a fraction",
    str: "text",
    dict: "an object",
    list: "a list",
}


def _tidy_text(text: str) -> str:
    """A name that would do, made from one that does not."""
    candidate = re.sub(r"[^a-z0-9.-]+", "-", text.lower())
    candidate = ".".join(part.strip("-") for part in candidate.split(".") if part.strip("-"))
    if candidate and is_subdomain(candidate):
        return f"write {candidate}"
    return ""


def _quantity_fix(problem: str) -> str:
    _, _, fix = problem.partition("; ")
    if fix.startswith("write"):
        return fix
    return ""
