"""Chat through apprise, which is an extra (requirements/notices.in).

Apprise opens its connections itself, so the addresses cannot be looked at as those of webhooks are.
Only services whose servers are known are sent to, and servers of one's own by an IP address in an
allowed network. Redirects are not followed. Options of an address are refused: some of them have
apprise read a file or ask another server.
"""

from __future__ import annotations

import importlib.util
import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from scheduler.services.notices.addresses import NotSendable, is_allowed
from scheduler.services.notices.webhooks import Result

if TYPE_CHECKING:
    from apprise import NotifyBase

SERVICES: Final = ("slack", "discord", "tgram", "gchat", "wxteams", "pover")
"""Their servers are fixed: the address names only a room and a key."""
OWN_SERVERS: Final = ("mmost", "mmosts", "matrix", "matrixs", "rocket", "rockets", "ntfy", "json")


def has_chat() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("apprise") is not None


def check_chat(target: str, allowed: Sequence[str]) -> None:
    """Raises `NotSendable`."""
    _room(target, allowed)


def _room(target: str, allowed: Sequence[str]) -> NotifyBase:
    if not has_chat():
        raise NotSendable("Chat is not installed here. Ask an admin for requirements/notices.in.")
    scheme = target.partition("://")[0].lower()
    if scheme not in (*SERVICES, *OWN_SERVERS):
        raise NotSendable(
            f"“{scheme[:20]}” is not one of {', '.join((*SERVICES, *OWN_SERVERS))}. "
            "Write the address as apprise does, such as slack://TokenA/TokenB/TokenC."
        )
    if "?" in target:
        raise NotSendable("Options are not taken: leave out the “?” and what follows it.")
    room = _made(target)
    if scheme in OWN_SERVERS and not _is_on_allowed_server(target, room, allowed):
        raise NotSendable(
            "A chat server of your own is named by an IP address in a network that an admin has "
            "allowed with NOTICE_ALLOWED_NETWORKS. Else use a webhook."
        )
    return room


def _made(target: str) -> NotifyBase:
    """Just one room, whatever the text holds: `Apprise.add` would take several addresses."""
    import apprise  # only where somebody uses it

    asset = apprise.AppriseAsset(http_redirects=False)
    room = apprise.Apprise.instantiate(target, asset=asset)
    if room is None or any(not each.isprintable() or each in " ," for each in target):
        raise NotSendable("Apprise does not understand this address. Give one, and just one.")
    if hasattr(room, "discovery"):
        room.discovery = False  # a Matrix server could name another one
    return room


def _is_on_allowed_server(target: str, room: NotifyBase, allowed: Sequence[str]) -> bool:
    """Both readings of the address have to agree, ours and that of apprise."""
    try:
        host = urlsplit(target).hostname or ""
        is_same = str(getattr(room, "host", "")).strip("[]").lower() == host
        return is_same and is_allowed(ipaddress.ip_address(host), allowed)
    except ValueError:
        return False


def send_chat(target: str, title: str, text: str, allowed: Sequence[str]) -> Result:
    try:
        room = _room(target, allowed)
    except NotSendable as problem:
        return Result(False, str(problem))
    import apprise

    rooms = apprise.Apprise()
    rooms.add(room)
    if rooms.notify(title=title, body=text):
        return Result(True, "The chat took it.")
    return Result(False, "The chat did not take it.")
