"""Which addresses a message may be sent to.

Somebody could give the address of a machine that only we can reach: a database, the metadata
service of a cloud. A name is resolved once, every address that it has is looked at, and the
connection goes to one of those. So a name that has another address a moment later leads nowhere.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[..., list[Any]]

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_PUBLIC: Final = ipaddress.ip_network("2000::/3")
"""All that IPv6 has for the internet. Old forms of IPv4 in IPv6 and of private networks are outside
of it, and Python takes some of them for public.
"""
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network) for network in ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")
)
"""Not on the internet either, which Python learns in later versions."""


class NotSendable(Exception):
    """The message says why, for its owner."""


def sendable_addresses(
    host: str,
    port: int,
    allowed: Sequence[str],
    resolve: Resolve = socket.getaddrinfo,
) -> list[tuple[Any, ...]]:
    """What to connect to. Raises `NotSendable` if any of the addresses is private.

    `allowed` are private networks that may be sent to.
    """
    try:
        found = resolve(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NotSendable(f"The name {host} was not found.") from None
    places = [entry[4] for entry in found]
    if not places:
        raise NotSendable(f"The name {host} has no address.")
    for place in places:
        check_address(str(place[0]), allowed, host)
    return places


def check_address(text: str, allowed: Iterable[str], name: str = "") -> None:
    """Raises `NotSendable`. What a `name` leads to inside of our network is not told."""
    address = ipaddress.ip_address(text.partition("%")[0])
    inner = _inner_address(address)
    if is_allowed(inner, allowed):
        return
    if not _is_public(inner):
        if name in ("", text):
            what = f"{text} is an address of"
        else:
            what = f"{name} leads to"
        raise NotSendable(
            f"{what} a private network, where nothing is sent. "
            "An admin can allow it with NOTICE_ALLOWED_NETWORKS."
        )


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast:
        return False
    if address.version == 6 and address not in _PUBLIC:
        return False
    return not any(address in network for network in _SPECIAL)


def is_allowed(address: Address, allowed: Iterable[str]) -> bool:
    return any(address in ipaddress.ip_network(network) for network in allowed)


def _inner_address(address: Address) -> Address:
    """The IPv4 address that one of IPv6 stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.teredo:
        return address.teredo[1]
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address
