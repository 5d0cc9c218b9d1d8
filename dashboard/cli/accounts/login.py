"""`vcctl login`, `contexts` and `whoami`: which server, and as whom."""

from __future__ import annotations

import getpass
import platform
import re
import secrets
import sys
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from dashboard.cli import client, output
from dashboard.cli.accounts.contexts import Context, contexts_file, read_contexts, write_contexts
from dashboard.cli.client import Api, api
from dashboard.cli.commands import command, new_app
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem, usage
from dashboard.cli.tables import Table
from dashboard.cli.target import Target, find_target

contexts_app = new_app(
    "The servers that you signed in to, kept in one file that only you can read."
)
_CODE_PAGE = "/accounts/code/"
_CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def register(app: typer.Typer) -> None:
    command(
        app,
        "login",
        "vcctl login https://fumarole.example.com --username ann",
        "# with a token made on the account page",
        "vcctl login https://fumarole.example.com --with-token < token.txt",
        "vcctl login http://127.0.0.1:8000 --name lab",
    )(login)
    command(app, "whoami", "vcctl whoami", "vcctl whoami -o json")(whoami)


def login(
    address: Annotated[
        str,
        typer.Argument(
            metavar="[URL]", help="The server; the same as --server.", show_default=False
        ),
    ] = "",
    username: Annotated[
        str,
        typer.Option(
            "--username", "-u", help="Your account. Without it you are asked.", show_default=False
        ),
    ] = "",
    with_token: Annotated[
        bool,
        typer.Option(
            "--with-token", help="Read a token from standard input instead of a password."
        ),
    ] = False,
    name: Annotated[
        str,
        typer.Option(
            "--name", help="A name for this server. Without it: its host.", show_default=False
        ),
    ] = "",
) -> None:
    """Sign in to a server and make it the current one.

    With a password, a token is made for this machine; the password is not kept.
    """
    given = client.options
    target = find_target(replace(given, server=address or given.server))
    token = _given_token(target, with_token, given.token_file) or _token_for_password(
        target, username
    )
    user = Api(replace(target, token=token)).get("users/~/")["metadata"]["name"]
    called = name or given.context or urlsplit(target.server).netloc
    contexts = read_contexts()
    contexts.known[called] = Context(target.server, token, user, target.ca_cert, target.insecure)
    contexts.current = called
    write_contexts(contexts)
    output.line(
        f"Signed in to {target.server} as {user}; the context {called} is current, kept in "
        f"{contexts_file()}"
    )


def _given_token(target: Target, with_token: bool, token_file: str) -> str:
    if token_file:
        return target.token
    if not with_token:
        return ""
    if sys.stdin.isatty():
        token = getpass.getpass("Token: ")
    else:
        token = sys.stdin.readline()
    if not token.strip():
        raise usage(
            "There is no token on standard input. Make one on the account page of the server."
        )
    return token.strip()


def _token_for_password(target: Target, username: str) -> str:
    if not sys.stdin.isatty():
        raise usage(
            "A password can be typed at a terminal only. In a script, use --with-token or "
            "--token-file."
        )
    user = username or input("User name: ").strip()
    return token_with_password(target, user, getpass.getpass(f"Password of {user}: "))


def token_with_password(target: Target, user: str, password: str) -> str:
    """Sign in as a browser does, and make a token that stays when the session ends."""
    site = Api(replace(target, token=""))
    page_address = f"{target.server}/accounts/login/"
    page = site.once("GET", page_address)
    found = _CSRF.search(page.text)
    if page.status_code != 200 or found is None:
        raise Problem(
            f"{target.server} has no page to sign in at. Is it a Fumarole server?",
            ExitCode.NO_CONNECTION,
        )
    form = {"username": user, "password": password, "csrfmiddlewaretoken": found[1]}
    answer = site.once("POST", page_address, data=form, headers={"Referer": page_address})
    if answer.status_code != 302:
        raise _refused_sign_in(target.server, user, answer.status_code)
    if answer.headers.get("Location", "").endswith(_CODE_PAGE):
        _send_code(site, target.server + _CODE_PAGE)
    body = {"name": f"vcctl on {platform.node()[:40]} {secrets.token_hex(3)}", "scopes": ["admin"]}
    csrf = {"X-CSRFToken": site.client.cookies.get("csrftoken") or "", "Referer": target.server}
    made = site.once("POST", "tokens/", json=body, headers=csrf)
    if made.status_code != 201:
        raise Problem(
            f"{target.server} did not make a token for {user} ({made.status_code}).",
            ExitCode.NOT_ALLOWED,
        )
    return str(made.json()["token"])


def _refused_sign_in(server: str, user: str, status: int) -> Problem:
    """The page comes again after a wrong password. Other answers are not about the password."""
    if status == 200:
        return Problem(f"{server} did not accept the password of {user}.", ExitCode.NOT_ALLOWED)
    if status == 403:
        return Problem(
            f"{server} did not take the form to sign in, so the password was not looked at. Does "
            "the address have the scheme and the name that people use? An admin sets the others "
            "in CSRF_TRUSTED_ORIGINS. A token from the account page works: vcctl login "
            "--with-token.",
            ExitCode.NOT_ALLOWED,
        )
    if status == 429:
        return Problem(
            f"{server} lets nobody try more passwords for {user} now. Wait, or sign in with a "
            "token: vcctl login --with-token.",
            ExitCode.NOT_ALLOWED,
        )
    return Problem(
        f"{server} could not sign {user} in ({status}). Try again.", ExitCode.NO_CONNECTION
    )


def _send_code(site: Api, address: str) -> None:
    """The account has a second factor, so the server asks for a code after the password."""
    found = _CSRF.search(site.once("GET", address).text)
    if found is None:
        raise Problem("The server did not ask for a code. Sign in again.", ExitCode.NOT_ALLOWED)
    code = getpass.getpass("Code of your app, or a recovery code: ")
    form = {"code": code, "csrfmiddlewaretoken": found[1]}
    answer = site.once("POST", address, data=form, headers={"Referer": address})
    if answer.status_code != 302:
        raise Problem(
            "The server did not accept the code. Wait for the next one, and sign in again.",
            ExitCode.NOT_ALLOWED,
        )


@contexts_app.callback(invoke_without_command=True, no_args_is_help=False)
def contexts(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_contexts()


@command(
    contexts_app, "list", "vcctl contexts", "vcctl contexts list", "vcctl contexts list -o json"
)
def list_contexts(form: Output = Format.TABLE) -> None:
    """The servers you signed in to; * is the current one. Tokens are not shown."""
    contexts = read_contexts()
    rows: list[dict[str, Any]] = []
    for name, one in sorted(contexts.known.items()):
        rows.append(
            {
                "current": name == contexts.current,
                "name": name,
                "server": one.server,
                "user": one.user,
            }
        )
    if form in (Format.JSON, Format.YAML):
        output.show_value(rows, form)
    elif form is Format.NAME:
        output.line("\n".join(contexts.known))
    else:
        table = []
        for row in rows:
            mark = ""
            if row["current"]:
                mark = "*"
            table.append([mark, row["name"], row["server"], row["user"] or "-"])
        Table(
            ("Current", "Name", "Server", "User"),
            list(table),
            empty="No contexts yet; make one with vcctl login",
        ).print()


def _complete_context(incomplete: str) -> list[str]:
    names: list[str] = []
    for name in read_contexts().known:
        if name.startswith(incomplete):
            names.append(name)
    return names


ContextArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The context.",
        autocompletion=_complete_context,
        show_default=False,
    ),
]


@command(
    contexts_app,
    "use",
    "vcctl contexts use lab",
    "# back to the installation on this machine",
    "vcctl contexts use local",
)
def use_context(name: ContextArgument) -> None:
    """Speak to this server from now on; `local` is the installation on this machine."""
    contexts = read_contexts()
    if name != "local" or name in contexts.known:
        contexts.named(name)
        contexts.current = name
    else:
        contexts.current = ""
    write_contexts(contexts)
    output.line(f"The context {name} is current.")


@command(contexts_app, "remove", "vcctl contexts remove lab")
def remove_context(name: ContextArgument) -> None:
    """Forget a server and the token for it. The token itself is revoked on the account page."""
    contexts = read_contexts()
    contexts.named(name)
    del contexts.known[name]
    if contexts.current == name:
        contexts.current = ""
    write_contexts(contexts)
    output.line(f"The context {name} is forgotten.")


def whoami(form: Output = Format.TABLE) -> None:
    """Who you are to the server, and what you may do there."""
    user = api().get("users/~/")
    if form in output.PLAIN_FORMATS:
        output.show_value(user, form)
        return
    spec = user["spec"]
    target = api().target
    output.line(f"{spec['username']} at {target.server} ({target.origin})")
    if spec["groups"]:
        output.line(f"Groups: {', '.join(spec['groups'])}")
    output.line(_roles_text(spec))


def _roles_text(spec: dict[str, Any]) -> str:
    if spec["isClusterAdmin"]:
        return "You are a cluster admin: you may do everything, as far as your token goes."
    grants = []
    for grant in api().all("grants/"):
        grants.append(grant["spec"])
    own = []
    for grant in grants:
        if grant["user"] == spec["username"] or grant["group"] in spec["groups"]:
            own.append(grant)
    if not own:
        return "You have no role on any queue. Ask an admin for one."
    return "Roles: " + ", ".join(f"{grant['role']} on {grant['queue']}" for grant in own)
