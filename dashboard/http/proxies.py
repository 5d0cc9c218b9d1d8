"""Who sent a request that a proxy passes on. Only proxies in TRUSTED_PROXIES are believed.

`X-Forwarded-For` is read from the right: the last entry was written by the proxy that connected to
us, the one before it by the proxy in front of that one, and so on. The first address that is not a
trusted proxy is the visitor. The entries further left were sent by the visitor, who can write
anything.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

UNIX = "unix"
"""In TRUSTED_PROXIES: connections by a Unix socket, which have no address."""

_FORWARDING = (
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_X_FORWARDED_SERVER",
    "HTTP_X_REAL_IP",
    "HTTP_FORWARDED",
    "HTTP_VIA",
)
_BELIEVED_LATER = ("HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT")
_LONGEST_CHAIN = 64  # entries that are looked at: no real chain of proxies is longer


class TrustedProxyMiddleware:
    """Puts the visitor's address into `REMOTE_ADDR`. It comes first: all others see that one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        place_visitor(request)
        return self.get_response(request)


def place_visitor(request: HttpRequest) -> None:
    peer = request.META.get("REMOTE_ADDR") or ""
    was_forwarded = any(name in request.META for name in _FORWARDING)
    if is_trusted(peer):
        given = request.META.get("HTTP_X_FORWARDED_FOR", "")
        request.META["REMOTE_ADDR"] = visitor(given, peer)
        _keep_last_scheme(request)
        if not given:
            _tell_once(
                peer, "The proxy %s does not say whom it speaks for. Let it set X-Forwarded-For."
            )
    elif was_forwarded:
        for name in _BELIEVED_LATER:
            request.META.pop(name, None)
        _tell_once(
            peer,
            "%s sends forwarding headers and is not in TRUSTED_PROXIES. They are not believed.",
        )
    request.through_proxy = was_forwarded or is_trusted(peer)  # type: ignore[attr-defined]


def _keep_last_scheme(request: HttpRequest) -> None:
    """Of several only the one that the nearest proxy wrote."""
    given = request.META.get("HTTP_X_FORWARDED_PROTO")
    if given is not None:
        request.META["HTTP_X_FORWARDED_PROTO"] = given.rpartition(",")[2].strip().lower()


def visitor(forwarded_for: str, peer: str) -> str:
    """The nearest address that is not a trusted proxy; `peer` if the header has no address."""
    nearest = peer
    for entry in reversed(forwarded_for.split(",")[-_LONGEST_CHAIN:]):
        address = _address(entry)
        if address is None:
            return nearest
        nearest = str(address)
        if not is_trusted(nearest):
            return nearest
    return nearest


def is_trusted(address: str) -> bool:
    proxies = _trusted(tuple(settings.TRUSTED_PROXIES))
    if not address:
        return UNIX in settings.TRUSTED_PROXIES
    read = _address(address)
    return read is not None and any(read in network for network in proxies)


@lru_cache(maxsize=16)
def _trusted(given: tuple[str, ...]) -> tuple[Network, ...]:
    networks: list[Network] = []
    for entry in given:
        if entry != UNIX:
            networks.append(ipaddress.ip_network(entry))
    return tuple(networks)


def _address(text: str) -> Address | None:
    """With or without a port, as proxies write it. An IPv4-mapped IPv6 address becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def neighbourhood(address: str) -> str:
    """What counts as one address: for IPv6 the network of 64 bits that one customer has."""
    read = _address(address)
    if read is None:
        return address
    if isinstance(read, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((read, 64), strict=False).network_address)
    return str(read)


def is_from_this_machine(request: HttpRequest) -> bool:
    """What a proxy on this machine passes on is not from here, whatever its headers say."""
    if getattr(request, "through_proxy", True):
        return False
    address = _address(request.META.get("REMOTE_ADDR") or "")
    return address is not None and address.is_loopback


@lru_cache(maxsize=64)
def _tell_once(peer: str, words: str) -> None:
    logger.warning(words, peer or "a Unix socket")
