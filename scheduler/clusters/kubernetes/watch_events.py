"""What a watch tells: first everything there is, then every change to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from scheduler.clusters.kubernetes.resources import Resource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """Everything there is. What is known and in neither list is gone."""

    resource: Resource
    resource_version: str
    values: tuple[T, ...]
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """An object that was created or changed, whole."""

    resource: Resource
    resource_version: str
    value: T


@dataclass(frozen=True, slots=True)
class Removed(Generic[T]):
    """An object that is gone, as it was last."""

    resource: Resource
    resource_version: str
    value: T


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing new up to this version. A watch may begin from here next time."""

    resource: Resource
    resource_version: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The server cannot be heard. The watch tries again after `retry_seconds`."""

    resource: Resource
    error: Exception
    retry_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that cannot be read: everything else goes on. `key` is namespace/name."""

    resource: Resource
    resource_version: str
    key: str
    problem: str


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """In seconds.

    The server ends a watch after `server_timeout`, and sends a bookmark about once a minute. If
    nothing at all comes for `silence`, the connection is taken for dead.
    """

    server_timeout: int = 300
    silence: float = 90.0
    first_back_off: float = 0.2
    longest_back_off: float = 15.0


WatchEvent = Listed[T] | Changed[T] | Removed[T] | Bookmark | Lost | Unreadable
