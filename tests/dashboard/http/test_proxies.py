"""Proxies: whose headers are believed, and that whoever asks through one is never this machine."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.test import Client

from dashboard.http.proxies import is_from_this_machine, neighbourhood, place_visitor, visitor
from dashboard.settings import require_network
from scheduler.services.demo.setup import ensure_builtin_objects

PROXY = "127.0.0.1"


@pytest.fixture
def behind_proxy(settings: Any) -> None:
    settings.TRUSTED_PROXIES = [PROXY, "10.1.0.0/16"]


def request_from(peer: str, **headers: str) -> HttpRequest:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": peer, **headers}
    place_visitor(request)
    return request


@pytest.mark.usefixtures("behind_proxy")
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("127.0.0.1, 203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, 10.1.4.4", "203.0.113.9"),
        ("198.51.100.1,203.0.113.9 , 10.1.4.4,10.1.0.2", "203.0.113.9"),
        ("10.1.4.4", "10.1.4.4"),
        ("203.0.113.9:51234", "203.0.113.9"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, nonsense", PROXY),
        ("203.0.113.9, unknown, 10.1.4.4", "10.1.4.4"),
        ("", PROXY),
        (",", PROXY),
    ],
)
def test_the_visitor_is_the_nearest_address_that_is_no_proxy(header: str, expected: str):
    assert visitor(header, PROXY) == expected


def test_a_header_without_end_is_read_for_a_while_only(settings: Any):
    settings.TRUSTED_PROXIES = ["10.0.0.0/8"]

    assert visitor("203.0.113.9," + ",".join(["10.0.0.1"] * 100_000), "10.0.0.2") == "10.0.0.1"


@pytest.mark.usefixtures("behind_proxy")
@pytest.mark.parametrize("peer", ["203.0.113.9", "10.2.0.1", "::1", "", "127.0.0.2"])
def test_nobody_else_is_believed(peer: str):
    request = request_from(
        peer, HTTP_X_FORWARDED_FOR="198.51.100.1", HTTP_X_FORWARDED_PROTO="https"
    )

    assert request.META["REMOTE_ADDR"] == peer
    assert not request.is_secure()


@pytest.mark.usefixtures("behind_proxy")
def test_a_trusted_proxy_is_believed_about_https_and_only_its_own_word_counts():
    assert request_from(PROXY, HTTP_X_FORWARDED_PROTO="https").is_secure()
    assert not request_from(PROXY, HTTP_X_FORWARDED_PROTO="https, http").is_secure()


def test_a_unix_socket_is_trusted_by_name(settings: Any):
    settings.TRUSTED_PROXIES = ["unix"]

    assert request_from("", HTTP_X_FORWARDED_FOR="203.0.113.9").META["REMOTE_ADDR"] == "203.0.113.9"


@pytest.mark.usefixtures("behind_proxy")
@pytest.mark.parametrize(
    "headers", [{}, {"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, {"HTTP_X_FORWARDED_FOR": "::1"}]
)
def test_what_a_trusted_proxy_passes_on_is_never_from_this_machine(headers: dict[str, str]):
    assert not is_from_this_machine(request_from(PROXY, **headers))


@pytest.mark.parametrize(
    "header",
    ["X_FORWARDED_FOR", "X_FORWARDED_PROTO", "X_FORWARDED_HOST", "X_REAL_IP", "FORWARDED", "VIA"],
)
def test_a_proxy_that_nobody_named_gives_itself_away_by_any_header(header: str):
    assert is_from_this_machine(request_from("127.0.0.1"))
    assert is_from_this_machine(request_from("::ffff:127.0.0.1"))
    assert not is_from_this_machine(request_from("127.0.0.1", **{f"HTTP_{header}": "127.0.0.1"}))


@pytest.mark.django_db
@pytest.mark.parametrize("forwarded", [None, "127.0.0.1", "203.0.113.9"])
def test_metrics_and_admission_do_not_answer_strangers_through_a_proxy(
    behind_proxy: None, forwarded: str | None
):
    ensure_builtin_objects()
    client = Client(REMOTE_ADDR=PROXY, **({"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}))

    assert client.get("/metrics").status_code == 403
    assert (
        client.post("/admission/queues/validate", {}, content_type="application/json").status_code
        == 403
    )


@pytest.mark.django_db
def test_the_record_has_the_visitors_address(behind_proxy: None, admin_client: Client):
    from scheduler.models import AuditEntry

    ensure_builtin_objects()
    through = {"REMOTE_ADDR": PROXY, "HTTP_X_FORWARDED_FOR": "198.51.100.1, 203.0.113.9"}
    answer = admin_client.post(
        "/api/v1/queues/",
        {"metadata": {"name": "team"}},
        content_type="application/json",
        **through,
    )

    assert answer.status_code == 201
    assert AuditEntry.objects.get(name="team").address == "203.0.113.9"


@pytest.mark.parametrize("entry", ["proxy.example.com", "10.0.0.5/8", "*", "10.0.0"])
def test_a_setting_that_names_no_address_is_refused_at_the_start(entry: str):
    with pytest.raises(ImproperlyConfigured, match="neither an address nor a network"):
        require_network(entry)


def test_an_ipv6_customer_is_one_address():
    assert (
        neighbourhood("2001:db8:1:2:aaaa::7")
        == neighbourhood("2001:db8:1:2:bbbb::9")
        == "2001:db8:1:2::"
    )
    assert neighbourhood("203.0.113.9") == "203.0.113.9"
