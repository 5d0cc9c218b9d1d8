"""Amounts of cpu, memory and any other resource, exact: whole numbers of a base unit, never floats.

The base unit of `cpu` and of extended resources is a thousandth ("500m" is 500, one GPU is 1000),
so that a fair share may be a fraction of a device. Memory and storage are bytes, `pods` and
`count/…` are pieces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

MAX_AMOUNT: Final = 2**63 - 1
COMMON: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage", "storage"})
"""What every node has. Everything else is a device: GPUs, network cards, huge pages."""

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?\d{1,3})",
    re.ASCII,
)
_LONGEST_QUANTITY = 64


class QuantityError(ValueError):
    """A quantity that cannot be read.

    The message names the resource and the text, and says what to write.
    """

    def __init__(self, resource: str, text: object, problem: str) -> None:
        self.resource = resource
        self.text = text
        self.problem = problem
        super().__init__(f"{resource}: {_shown_text(text)} {problem}")


def _shown_text(text: object) -> str:
    if not isinstance(text, str):
        shown = repr(text)
    else:
        shown = f"“{text}”"
    if len(shown) <= 80:
        return shown
    return shown[:77] + "…”"


def units_per_one(resource: str) -> int:
    """How many base units make "1" of this resource."""
    counted_whole = resource in (
        "memory",
        "pods",
        "ephemeral-storage",
        "storage",
    ) or resource.startswith(("hugepages-", "count/"))
    if counted_whole:
        return 1
    return 1000


_ACCELERATOR = re.compile(r"gpu|[nthx]pu\b|fpga|neuron|gaudi|ascend|accelerator", re.IGNORECASE)


def is_accelerator(resource: str) -> bool:
    """By its name: GPUs and their like, the scarcest and dearest things of a cluster."""
    return "/" in resource and bool(_ACCELERATOR.search(resource))


def is_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage", "storage") or resource.startswith(
        "hugepages-"
    )


def parse_quantity(resource: str, text: object) -> int:
    """The amount in base units.

    Raises `QuantityError` for whatever Kubernetes would not take, and for fractions of a whole
    thing.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if isinstance(text, float):
        text = repr(text)
    if not isinstance(text, str):
        raise QuantityError(
            resource, text, "is not a quantity; write a number such as 2, 500m or 4Gi"
        )
    value = _parse_number(resource, text)
    scaled = value * units_per_one(resource)
    if scaled.denominator != 1:
        raise QuantityError(resource, text, _fraction_problem(resource))
    if units_per_one(resource) == 1000 and resource != "cpu" and value.denominator != 1:
        raise QuantityError(
            resource, text, "is a fraction; this resource is counted in whole numbers"
        )
    if abs(scaled) > MAX_AMOUNT:
        raise QuantityError(resource, text, "is larger than any amount that can be kept")
    return int(scaled)


def round_up_quantity(resource: str, text: object) -> int:
    """The amount in base units as Kubernetes itself counts it: rounded up, from 0 to the largest.

    For objects that an API server has accepted. Raises `QuantityError` for what is no quantity.
    """
    if not isinstance(text, str):
        text = str(text)
    scaled = _parse_number(resource, text) * units_per_one(resource)
    return min(max(0, math.ceil(scaled)), MAX_AMOUNT)


def _fraction_problem(resource: str) -> str:
    if resource == "cpu":
        return "is finer than a thousandth of a cpu (1m), the smallest amount"
    if is_bytes(resource):
        return "is a fraction of a byte"
    return "is a fraction; this resource is counted in whole numbers"


def _parse_number(resource: str, text: str) -> Fraction:
    if len(text) <= _LONGEST_QUANTITY:
        match = _QUANTITY.fullmatch(text)
    else:
        match = None
    if match is None:
        raise QuantityError(resource, text, _hint_for(text))
    suffix = match["suffix"]
    if suffix in _BINARY:
        return Fraction(match["number"]) * _BINARY[suffix]
    if suffix in _DECIMAL:
        exponent = _DECIMAL[suffix]
    else:
        exponent = int(suffix[1:])
    return Fraction(match["number"]) * Fraction(10) ** exponent


def _hint_for(text: str) -> str:
    cores = re.fullmatch(r"(\d+)c", text)
    if cores:
        return f"is not a quantity; write {cores[1]} or {cores[1]}000m"
    if text != text.strip() or " " in text:
        return "is not a quantity: it contains a space; write it as one word, such as 1Gi"
    return "is not a quantity; write a number such as 2, 500m, 1.5, 4Gi or 1e3"


def format_quantity(resource: str, amount: int) -> str:
    """The shortest Kubernetes text that reads back as the same amount."""
    if is_bytes(resource):
        return _format_bytes(amount)
    whole, rest = divmod(abs(amount), units_per_one(resource))
    if amount < 0:
        sign = "-"
    else:
        sign = ""
    if rest == 0:
        return f"{sign}{whole}"
    return f"{sign}{abs(amount)}m"


def _format_bytes(amount: int) -> str:
    for suffix, size in reversed(_BINARY.items()):
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return str(amount)


class Resources(Mapping[str, int]):
    """An immutable set of amounts by resource name, in base units.

    A resource that is present with 0 is not the same as one that is absent: absent means unset (no
    limit, nothing asked), which each caller reads in its own way and says so. Arithmetic treats
    absent as 0 and keeps every name that either side has.
    """

    __slots__ = ("_amounts", "_hash")

    def __init__(self, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        self._amounts: dict[str, int] = dict(sorted(dict(amounts).items()))
        self._hash: int | None = None

    @classmethod
    def in_order(cls, amounts: dict[str, int]) -> Resources:
        """Of amounts that are in the order of their names already, and nobody else's."""
        found = cls.__new__(cls)
        found._amounts = amounts
        found._hash = None
        return found

    @classmethod
    def parse(cls, quantities: Mapping[str, object] | None) -> Resources:
        """From Kubernetes quantities such as {"cpu": "500m"}; raises `QuantityError`."""
        return cls({name: parse_quantity(name, text) for name, text in (quantities or {}).items()})

    def to_quantities(self) -> dict[str, str]:
        return {name: format_quantity(name, amount) for name, amount in self._amounts.items()}

    def __getitem__(self, name: str) -> int:
        return self._amounts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __contains__(self, name: object) -> bool:
        return name in self._amounts

    def __len__(self) -> int:
        return len(self._amounts)

    def __bool__(self) -> bool:
        """Whether anything is named at all; see `is_empty` for whether there is any of it."""
        return bool(self._amounts)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._amounts.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self._amounts == other._amounts

    def __repr__(self) -> str:
        return f"Resources({self.to_quantities()})"

    def amount(self, name: str) -> int:
        """The amount, 0 where the resource is absent."""
        return self._amounts.get(name, 0)

    def __add__(self, other: Resources) -> Resources:
        return Resources({name: self.amount(name) + other.amount(name) for name in {*self, *other}})

    def __sub__(self, other: Resources) -> Resources:
        """May go below zero: the caller decides what that means."""
        return Resources({name: self.amount(name) - other.amount(name) for name in {*self, *other}})

    def __mul__(self, times: int) -> Resources:
        return Resources({name: amount * times for name, amount in self._amounts.items()})

    @property
    def is_empty(self) -> bool:
        """Nothing at all, or only zeros."""
        return not any(self._amounts.values())

    def clamped_at_zero(self) -> Resources:
        return Resources({name: max(0, amount) for name, amount in self._amounts.items()})


def total(parts: Iterable[Resources]) -> Resources:
    """The sum of all parts."""
    sums: dict[str, int] = {}
    for part in parts:
        for name, amount in part._amounts.items():
            sums[name] = sums.get(name, 0) + amount
    return Resources(sums)


class Sum:
    """A sum of amounts from which parts can be taken away again.

    A resource is in it as long as some part names it, even with 0.
    """

    __slots__ = ("_sums",)

    def __init__(self, sums: Mapping[str, tuple[int, int]]) -> None:
        self._sums = sums  # name -> (amount, number of parts that name it)

    @classmethod
    def of(cls, parts: Iterable[Resources]) -> Sum:
        sums: dict[str, tuple[int, int]] = {}
        for part in parts:
            _add_times(sums, part, 1)
        return cls(sums)

    @classmethod
    def of_many(cls, parts: Iterable[tuple[Resources, int]]) -> Sum:
        """Of parts that come so many times each."""
        sums: dict[str, tuple[int, int]] = {}
        for part, times in parts:
            _add_times(sums, part, times)
        return cls(sums)

    def plus(self, part: Resources, times: int = 1) -> Sum:
        """With one part more, or with `times=-1` with one of its parts less."""
        sums = dict(self._sums)
        _add_times(sums, part, times)
        return Sum(sums)

    def resources(self) -> Resources:
        return Resources({name: amount for name, (amount, _) in self._sums.items()})


def _add_times(sums: dict[str, tuple[int, int]], part: Resources, times: int) -> None:
    for name, amount in part._amounts.items():
        before, parts = sums.get(name, (0, 0))
        sums[name] = (before + times * amount, parts + times)
        if not sums[name][1]:
            del sums[name]


NOTHING: Final = Resources()
