"""Nothing is sent to private addresses, however they are written."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from scheduler.services.notices.addresses import NotSendable, check_address, sendable_addresses
from scheduler.services.notices.webhooks import new_secret, post, split_url
from tests.services.notices.receiver import receiver


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.7.7",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b:1::a00:1",
        "fec0::1",
        "3fff::1",
        "5f00::1",
        "192.0.0.8",
        "192.88.99.1",
    ],
)
def test_a_private_address_is_refused(address):
    with pytest.raises(NotSendable, match="private network"):
        check_address(address, ())


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"])
def test_a_public_address_is_taken(address):
    check_address(address, ())


def test_what_a_name_leads_to_inside_is_not_told():
    def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.1.2.3", 443))]

    with pytest.raises(NotSendable) as refused:
        sendable_addresses("wiki.internal", 443, (), resolve)

    assert str(refused.value).startswith("wiki.internal leads to a private network")
    assert "10.1.2.3" not in str(refused.value)


def test_an_allowed_network_is_taken_also_as_ipv6():
    check_address("10.1.2.3", ("10.0.0.0/8",))
    check_address("::ffff:10.1.2.3", ("10.0.0.0/8",))
    with pytest.raises(NotSendable):
        check_address("192.168.1.1", ("10.0.0.0/8",))


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "::1"])
def test_a_private_address_is_refused_however_it_is_written(host):
    with pytest.raises(NotSendable, match="private network"):
        sendable_addresses(host, 80, ())


def found(*addresses: str) -> Any:
    def resolve(_host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]

    return resolve


def test_one_private_address_among_public_ones_is_too_many():
    with pytest.raises(NotSendable, match="name leads to a private network"):
        sendable_addresses("name", 80, (), found("93.184.216.34", "10.0.0.1"))


def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked():
    """A name that is public when it is looked at, and private a moment later."""
    asked = []
    with receiver() as hook:
        port = int(hook.url.split(":")[2].split("/")[0])

        def resolve(host: str, _port: int, **_: Any) -> list[Any]:
            asked.append(host)
            place = "127.0.0.1" if len(asked) == 1 else "10.255.255.1"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]

        result = post(
            f"http://changing.example:{port}/hook",
            b"{}",
            "msg_1",
            [new_secret()],
            allowed=("127.0.0.0/8",),
            resolve=resolve,
        )

    assert result.worked, result.message
    assert asked == ["changing.example"]
    assert hook.got[0].headers["host"] == f"changing.example:{port}"


def test_a_name_whose_second_answer_is_private_is_never_asked_a_second_time():
    answers = iter([found("127.0.0.1"), found("93.184.216.34")])

    def resolve(*place: Any, **more: Any) -> Any:
        return next(answers)(*place, **more)

    result = post("http://name.example/", b"{}", "msg_1", [new_secret()], resolve=resolve)

    assert not result.worked
    assert "private network" in result.message


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "example.com",
        "http://",
        "http://user:word@example.com/",
        "http://example.com:99999/",
        "http://exam ple.com/",
        "http://example.com/\r\nX: y",
        "file:///etc/passwd",
    ],
)
def test_what_is_no_address_of_a_web_server_is_refused(url):
    with pytest.raises(NotSendable):
        split_url(url)
