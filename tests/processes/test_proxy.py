"""The nginx configuration of docs/how-to/production.md, word for word, in Debian's nginx in front
of the real web process.

Visitors come from different addresses of this machine (127.0.0.2, 127.0.0.3 …); nginx connects from
127.0.0.1.
"""

from __future__ import annotations

import re
import shlex
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from scheduler.supervisor.redis_server import find_binary
from tests.needed import debian_program
from tests.running import BASE, PATIENCE_SECONDS, clean_environment, random_port

pytestmark = pytest.mark.processes
GUIDE = (BASE / "docs" / "how-to" / "production.md").read_text()
SITE = "queues.example.com"
REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


@pytest.fixture(scope="module")
def nginx() -> str:
    return debian_program("nginx", "nginx")


def documented_settings() -> dict[str, str]:
    """What the guide exports, but for what this test has of its own."""
    lines = re.findall(r'^export (\w+)="?([^"\n]*)"?', GUIDE, re.MULTILINE)
    return {
        name: value
        for name, value in lines
        if name in ("ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "TRUSTED_PROXIES")
    }


def documented_command(section: str) -> list[str]:
    """The first line of the shell block under that heading."""
    block = re.search(rf"^## \d\. {section}$.*?^```sh\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    assert block is not None
    return [
        sys.executable if word == ".venv/bin/python" else word
        for word in shlex.split(block[1].splitlines()[0])
    ]


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.web = random_port()
        self.tls = random_port()

    def visitor(self, address: str, *, port: int | None = None, **headers: str) -> httpx.Client:
        """Somebody at that address who asks through nginx, or past it where a port is given."""
        scheme, at = ("https", self.tls) if port is None else ("http", port)
        return httpx.Client(
            base_url=f"{scheme}://127.0.0.1:{at}",
            transport=httpx.HTTPTransport(verify=False, local_address=address),
            headers={"Host": SITE, **headers},
            timeout=30,
        )

    def password(self) -> str:
        return (self.folder / "var" / "admin-password").read_text().strip()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, nginx: str) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("proxy"))
    redis = random_port()
    environment = clean_environment(
        site.folder / "var",
        site.web,
        SECRET_KEY="k" * 50,
        REDIS_URL=f"redis://127.0.0.1:{redis}/0",
        API_ANONYMOUS_RATE_PER_MINUTE="20",
        **documented_settings(),
    )
    (site.folder / "var").mkdir()
    subprocess.run(documented_command("The database"), cwd=BASE, env=environment, check=True)
    commands = [
        [find_binary(), "--port", str(redis), "--dir", str(site.folder), "--save", ""],
        [str(site.web) if word == "8000" else word for word in documented_command("The processes")],
        [nginx, "-p", str(site.folder), "-c", str(configuration(site))],
    ]
    started = [subprocess.Popen(command, cwd=BASE, env=environment) for command in commands]
    try:
        wait_until_up(site)
        yield site
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def configuration(site: Site) -> Path:
    """The documented one, with this test's ports and certificate, in the frame that Debian's
    nginx.conf is.
    """
    block = re.search(r"^```nginx\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    assert block is not None
    certificate = site.folder / "cert.pem"
    key = site.folder / "key.pem"
    openssl = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={SITE}",
    ]
    subprocess.run([*openssl, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    own = {
        "listen 443 ssl;": f"listen 127.0.0.1:{site.tls} ssl;",
        "/etc/ssl/certs/queues.example.com.pem": str(certificate),
        "/etc/ssl/private/queues.example.com.key": str(key),
        "http://127.0.0.1:8000": f"http://127.0.0.1:{site.web}",
    }
    documented = block[1]
    for theirs, ours in own.items():
        assert theirs in documented
        documented = documented.replace(theirs, ours)
    folders = "".join(
        f"{name}_temp_path {site.folder};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    frame = (
        f"daemon off;\nmaster_process off;\npid {site.folder}/nginx.pid;\nerror_log stderr "
        f"crit;\nevents {{}}\n"
    )
    path = site.folder / "nginx.conf"
    path.write_text(f"{frame}http {{\naccess_log off;\n{folders}{documented}}}\n")
    return path


def wait_until_up(site: Site) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            with site.visitor("127.0.0.9") as anybody:
                if anybody.get("/healthz").status_code == 200:
                    return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise AssertionError("the site did not come up behind nginx")


def signs_in(visitor: httpx.Client, password: str) -> int:
    form = visitor.get("/accounts/login/")
    assert form.status_code == 200
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
    assert token is not None
    body = {"csrfmiddlewaretoken": token[1], "username": "admin", "password": password}
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    headers = {
        "Origin": f"https://{SITE}",
        "Referer": f"https://{SITE}/accounts/login/",
        "Cookie": cookies,
    }
    return visitor.post("/accounts/login/", data=body, headers=headers).status_code


@pytest.mark.parametrize(
    "forged",
    [{}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "::1", "Forwarded": "for=127.0.0.1"}],
)
def test_metrics_and_admission_answer_nobody_through_the_proxy(site: Site, forged: dict[str, str]):
    for address in ("127.0.0.2", "127.0.0.1"):
        with site.visitor(address, **forged) as stranger:
            assert stranger.get("/metrics").status_code == 403
            assert stranger.post("/admission/queues/validate", json=REVIEW).status_code == 403


def test_this_machine_itself_reads_them_past_the_proxy_with_a_token_only(site: Site):
    with site.visitor("127.0.0.1", port=site.web) as local:
        assert (
            local.get("/metrics").status_code == 403
        )  # it could be the proxy that forgot to say whom it speaks for


def test_guessing_is_locked_whatever_the_visitor_writes_into_the_header(site: Site):
    answers = []
    for number in range(12):
        with site.visitor("127.0.0.3", **{"X-Forwarded-For": f"203.0.113.{number}"}) as guesser:
            answers.append(signs_in(guesser, "wrong"))

    assert answers == [200] * 9 + [429] * 3
    with site.visitor("127.0.0.3") as guesser:
        assert signs_in(guesser, site.password()) == 429


def test_another_visitor_signs_in_by_https_while_the_first_is_locked(site: Site):
    with site.visitor("127.0.0.4") as owner:
        assert signs_in(owner, site.password()) == 302
        cookies = [cookie for cookie in owner.cookies.jar if cookie.name == "sessionid"]
        assert [cookie.secure for cookie in cookies] == [True]
        open_socket(site, f"sessionid={cookies[0].value}")


def open_socket(site: Site, cookie: str) -> None:
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    headers = {"Cookie": cookie, "Origin": f"https://{SITE}"}
    wire = socket.create_connection(("127.0.0.1", site.tls))
    with connect(
        f"wss://{SITE}/ws/v1/",
        sock=wire,
        ssl=anybody,
        additional_headers=headers,
        proxy=None,
    ) as opened:
        opened.send('{"type": "subscribe", "topics": ["queues"]}')
        assert "queues" in str(opened.recv(timeout=PATIENCE_SECONDS))


def test_static_files_come_through_the_proxy(site: Site):
    with site.visitor("127.0.0.8") as anybody:
        page = anybody.get("/accounts/login/").text
        linked = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
        answers = {path: anybody.get(path).status_code for path in linked}

    assert any(path.endswith(".css") for path in linked)
    assert any(path.endswith(".js") for path in linked)
    assert set(answers.values()) == {200}


def test_the_proxy_takes_what_the_program_takes_and_no_more(site: Site):
    """The limit of the guide's nginx is the default of MAX_BODY_BYTES."""
    largest = 10 * 1024 * 1024
    sizes = {}
    for size in (largest, largest + 1):
        with site.visitor("127.0.0.10") as anybody:
            answer = anybody.post("/api/v1/apply/", content=b" " * size)
            sizes[size] = (answer.status_code, "nginx" in answer.text)

    assert sizes == {largest: (401, False), largest + 1: (413, True)}


def test_the_rate_limit_counts_visitors_and_not_what_they_write(site: Site):
    codes = []
    for number in range(45):  # more than twice the limit: a new minute may begin in between
        with site.visitor("127.0.0.5", **{"X-Forwarded-For": f"198.51.100.{number}"}) as caller:
            codes.append(caller.get("/api/v1/queues/").status_code)
    with site.visitor("127.0.0.6") as other:
        assert other.get("/api/v1/queues/").status_code in (401, 403)

    assert 429 in codes


def test_headers_from_elsewhere_than_the_proxy_are_not_believed(site: Site):
    claims = {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https"}
    with site.visitor("127.0.0.7", port=site.web, **claims) as direct:
        assert direct.get("/metrics").status_code == 403
        assert "strict-transport-security" not in direct.get("/healthz").headers
