"""Chat through apprise, which is an extra (requirements/notices.in).

Apprise opens its connections itself, so the addresses cannot be looked at as those of webhooks are.
Only services whose servers are known are sent to, and servers of one's own by an IP address in an
allowed network.
"""

from __future__ import annotations

import importlib.util
import ipaddress
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from scheduler.services.notices.addresses import NotSendable, is_allowed
from scheduler.services.notices.webhooks import Result

SERVICES: Final = ("slack", "discord", "tgram", "msteams", "gchat", "wxteams", "pover")
"""Their servers are fixed: the address names only a room and a key."""
OWN_SERVERS: Final = ("mmost", "mmosts", "matrix", "matrixs", "rocket", "rockets", "ntfy", "json")


def has_chat() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("apprise") is not None


def check_chat(target: str, allowed: Sequence[str]) -> None:
    """Raises `NotSendable`."""
    if not has_chat():
        raise NotSendable("Chat is not installed here. Ask an admin for requirements/notices.in.")
    scheme = target.partition("://")[0].lower()
    if scheme in SERVICES:
        return
    if scheme not in OWN_SERVERS:
        raise NotSendable(
            f"“{scheme[:20]}” is not one of {', '.join((*SERVICES, *OWN_SERVERS))}. "
            "Write the address as apprise does, such as slack://TokenA/TokenB/TokenC."
        )
    if not _is_on_allowed_server(target, allowed):
        raise NotSendable(
            "A chat server of your own is named by an IP address in a network that an admin has "
            "allowed with NOTICE_ALLOWED_NETWORKS. Else use a webhook."
        )


def _is_on_allowed_server(target: str, allowed: Sequence[str]) -> bool:
    try:
        host = urlsplit(target).hostname or ""
        return is_allowed(ipaddress.ip_address(host), allowed)
    except ValueError:
        return False


def send_chat(target: str, title: str, text: str, allowed: Sequence[str]) -> Result:
    try:
        check_chat(target, allowed)
    except NotSendable as problem:
        return Result(False, str(problem))
    import apprise  # only where somebody uses it

    rooms = apprise.Apprise()
    if not rooms.add(target):
        return Result(False, "Apprise does not understand this address.")
    if rooms.notify(title=title, body=text):
        return Result(True, "The chat took it.")
    return Result(False, "The chat did not take it.")
