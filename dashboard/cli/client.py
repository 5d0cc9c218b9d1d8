"""The REST API as the commands use it.

Answers are plain values. Refusals become one sentence with the right exit code.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from dashboard.cli import VERSION
from dashboard.cli.advice import sentence
from dashboard.cli.problems import ExitCode, Problem
from dashboard.cli.target import ConnectionOptions, Target, find_target

if TYPE_CHECKING:
    import httpx

_PAGE = 500
_NUMBERED = "X-Request-ID"
_TRIES = 3  # of a reading request that is told to come again
_LONGEST_PAUSE = 5.0
_LONGEST_SILENCE = 60.0  # of a stream: the server says every 15 s that it is still there
_CODES: Final[Mapping[int, ExitCode]] = {
    401: ExitCode.NOT_ALLOWED,
    403: ExitCode.NOT_ALLOWED,
    404: ExitCode.NOT_FOUND,
    429: ExitCode.NO_CONNECTION,
    502: ExitCode.NO_CONNECTION,
    503: ExitCode.NO_CONNECTION,
    504: ExitCode.NO_CONNECTION,
}

transport: Any = (
    None  # what carries requests; the network, unless a test has the server in its own process
)
options = ConnectionOptions()  # of the command that runs; set before it begins
_api: Api | None = None
_reason = ""  # why, where the command that runs writes; goes with each of its writes
# of the command that runs, such as --weight: a refusal speaks of these
own_options: Collection[str] = ()


def use(given: ConnectionOptions, reason: str = "", words: Collection[str] = ()) -> None:
    global options, _api, _reason, own_options
    options = given
    _api = None
    _reason = reason
    own_options = words


def api() -> Api:
    """The server of this command.

    Found when first asked for, so that what needs none works without one.
    """
    global _api
    if _api is None:
        _api = Api(find_target(options))
    return _api


def path(*parts: str) -> str:
    """An address below the API, safe for any name: path("queues", "team.a", "open")."""
    return "/".join(quote(part, safe="") for part in parts) + "/"


class Api:
    def __init__(self, target: Target) -> None:
        self.target = target
        self._client: httpx.Client | None = None

    @property
    def client(self) -> httpx.Client:
        httpx = _import_httpx()
        if self._client is None:
            agent = f"vcctl/{VERSION} ({sys.platform})"
            headers = {"User-Agent": agent, "Accept": "application/json"}
            if self.target.token:
                headers["Authorization"] = f"Bearer {self.target.token}"
            self._client = httpx.Client(
                base_url=f"{self.target.server}/api/v1/",
                headers=headers,
                timeout=self.target.timeout,
                verify=_trusted_certificates(self.target),
                transport=transport,
            )
        return self._client

    # Reading

    def get(self, where: str, **parameters: Any) -> Any:
        return self.ask("GET", where, parameters)

    def all(self, where: str, limit: int = 0, **parameters: Any) -> list[dict[str, Any]]:
        """Every object of a list, page after page; `limit` stops earlier."""
        found: list[dict[str, Any]] = []
        for page in self._read_pages(
            where, {"page_size": min(limit or _PAGE, _PAGE), **parameters}
        ):
            found += page
            if limit and len(found) >= limit:
                return found[:limit]
        return found

    def _read_pages(
        self,
        where: str,
        parameters: Mapping[str, Any],
    ) -> Iterator[list[dict[str, Any]]]:
        page = self.ask("GET", where, parameters)
        while True:
            yield page["results"]
            if not page.get("next"):
                return
            # our own address of it: a proxy may have another name
            page = self.ask("GET", f"{where}?{page['next'].partition('?')[2]}")

    def text(self, where: str, accept: str, **parameters: Any) -> str:
        return self.send("GET", where, parameters, headers={"Accept": accept}).text

    def events(self, where: str, parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Server-sent events while they come: the name and the data of each.

        Raises `Problem` where the connection is lost.
        """
        httpx = _import_httpx()
        given = {name: value for name, value in parameters.items() if value not in (None, "")}
        waits = httpx.Timeout(self.target.timeout, read=_LONGEST_SILENCE)
        headers = {"Accept": "text/event-stream"}
        try:
            with self.client.stream(
                "GET", where, params=given, headers=headers, timeout=waits
            ) as answer:
                if answer.status_code >= 300:
                    answer.read()
                    raise _problem_of(answer, self.target)
                yield from _read_events(answer.iter_lines())
        except httpx.TransportError as error:
            message = f"The connection to {self.target.server} was lost ({error})."
            raise Problem(message, ExitCode.NO_CONNECTION) from None

    # Writing

    def post(self, where: str, body: Any = None, dry_run: bool = False, **parameters: Any) -> Any:
        if body is None:
            body = {}
        return self.ask("POST", where, _with_dry_run(parameters, dry_run), body)

    def put(self, where: str, body: Any, dry_run: bool = False, **parameters: Any) -> Any:
        return self.ask("PUT", where, _with_dry_run(parameters, dry_run), body)

    def patch(self, where: str, body: Any, dry_run: bool = False) -> Any:
        return self.ask("PATCH", where, _with_dry_run({}, dry_run), body)

    def delete(self, where: str, dry_run: bool = False, **parameters: Any) -> Any:
        return self.ask("DELETE", where, _with_dry_run(parameters, dry_run))

    def post_text(
        self,
        where: str,
        text: str,
        kind: str,
        dry_run: bool = False,
        **parameters: Any,
    ) -> Any:
        response = self.send(
            "POST",
            where,
            _with_dry_run(parameters, dry_run),
            content=text.encode(),
            headers={"Content-Type": kind},
        )
        return self._read_answer(response)

    # How

    def ask(
        self,
        method: str,
        where: str,
        parameters: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        if body is None:
            return self._read_answer(self.send(method, where, parameters))
        return self._read_answer(self.send(method, where, parameters, json=body))

    def send(
        self,
        method: str,
        where: str,
        parameters: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> httpx.Response:
        given = {}
        for name, value in (parameters or {}).items():
            if value not in (None, ""):
                given[name] = value
        if _reason and method != "GET":
            given["reason"] = _reason
        if given:
            more["params"] = given
        response = self.once(method, where, **more)
        for _ in range(_TRIES - 1):
            if method != "GET" or response.status_code not in (429, 503):
                break
            time.sleep(_pause_before_retry(response))
            response = self.once(method, where, **more)
        if response.status_code >= 300:
            raise _problem_of(response, self.target)
        return response

    def once(self, method: str, where: str, **more: Any) -> httpx.Response:
        """One request and its answer, whatever that is. Raises `Problem` where there is none."""
        httpx = _import_httpx()
        try:
            return self.client.request(method, where, **more)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise Problem(
                f"The server {self.target.server} is not an address. Write it as "
                "http://127.0.0.1:8000.",
                ExitCode.USAGE,
            ) from None
        except httpx.ConnectError as error:
            raise Problem(
                _unreachable_message(self.target, error), ExitCode.NO_CONNECTION
            ) from None
        except httpx.TimeoutException:
            message = (
                f"{self.target.server} did not answer within {self.target.timeout:g} s. Try again, "
                "or give it longer with --timeout."
            )
            raise Problem(message, ExitCode.NO_CONNECTION) from None
        except httpx.TransportError as error:
            message = (
                f"The connection to {self.target.server} was lost ({error}). Check "
                "whether the command was carried out, then try again."
            )
            raise Problem(message, ExitCode.NO_CONNECTION) from None

    def _read_answer(self, response: httpx.Response) -> Any:
        """JSON alone is no proof: many a server answers any question with some.

        Ours numbers its answers.
        """
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if answer is None or _NUMBERED not in response.headers:
            message = (
                f"{self.target.server} does not answer like a Fumarole server. Is the address "
                "right?"
            )
            raise Problem(message, ExitCode.NO_CONNECTION)
        return answer


def _read_events(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)
            name = ""


def _import_httpx() -> Any:
    """Import it when it is first needed, and without its command line.

    That would bring a syntax highlighter with it.
    """
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # what Python does with None: the import fails, as httpx allows for
    import httpx

    return httpx


def _with_dry_run(parameters: Mapping[str, Any], dry_run: bool) -> dict[str, Any]:
    if dry_run:
        return {**parameters, "dry_run": "true"}
    return dict(parameters)


def _trusted_certificates(target: Target) -> Any:
    """What certificates are believed: none is asked for, those of a file, or the system's."""
    import ssl

    if target.server.startswith("http://") or target.insecure:
        return False
    try:
        return ssl.create_default_context(cafile=target.ca_cert or None)
    except (OSError, ssl.SSLError):
        raise Problem(
            f"The certificates in {target.ca_cert} cannot be read. Give a file in PEM form.",
            ExitCode.USAGE,
        ) from None


def _unreachable_message(target: Target, error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return (
            f"The certificate of {target.server} is not trusted. Give its authority with "
            "--ca-cert, or --insecure to go without the check."
        )
    if target.origin == "this machine":
        hint = "Is it running? make run starts it."
    else:
        hint = "Is it running, and is the address right?"
    return f"There is no connection to {target.server}. {hint}"


def _pause_before_retry(response: httpx.Response) -> float:
    seconds = response.headers.get("Retry-After", "")
    if seconds.isdigit():
        return min(float(seconds), _LONGEST_PAUSE)
    return 1.0


def _problem_of(response: httpx.Response, target: Target) -> Problem:
    code = _CODES.get(response.status_code, ExitCode.REFUSED)
    try:
        body = response.json()
        detail = str(body["detail"])
        violations = body.get("violations") or []
    except (ValueError, KeyError, TypeError):
        message = (
            f"{target.server} answered with {response.status_code} and no explanation. Is it a "
            "Fumarole server?"
        )
        if code is ExitCode.REFUSED:
            code = ExitCode.NO_CONNECTION
        return Problem(message, code)
    if response.status_code == 401:
        return Problem(f"{detail} Sign in with vcctl login, or give a token in VCCTL_TOKEN.", code)
    sentences = [sentence(violation, own_options) for violation in violations]
    return Problem("\n".join(sentences) or detail, code)
