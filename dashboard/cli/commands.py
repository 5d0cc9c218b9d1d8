"""How commands are registered.

Each has a help text with examples, and the options for the connection.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from dashboard.cli import client
from dashboard.cli.asking import Reason
from dashboard.cli.target import ConnectionOptions

_PANEL = "Connection"
Server = Annotated[
    str,
    typer.Option(
        "--server",
        "--master",
        "-s",
        metavar="URL",
        help="The server's address (VCCTL_SERVER).",
        rich_help_panel=_PANEL,
    ),
]
ContextName = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        help="A server you signed in to (VCCTL_CONTEXT).",
        rich_help_panel=_PANEL,
    ),
]
TokenFile = Annotated[
    str,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="A file with the token (VCCTL_TOKEN_FILE; or VCCTL_TOKEN).",
        rich_help_panel=_PANEL,
    ),
]
CaCert = Annotated[
    str,
    typer.Option(
        "--ca-cert",
        metavar="FILE",
        help="Trust this certificate authority (VCCTL_CA_CERT).",
        rich_help_panel=_PANEL,
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Do not check the server's certificate.", rich_help_panel=_PANEL
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        help="How long to wait for an answer.",
        rich_help_panel=_PANEL,
    ),
]
# by the name of the parameter: its type as typer reads it, and its default
Options = Mapping[str, tuple[Any, Any]]
_CONNECTION: Options = {
    "server": (Server, ""),
    "context": (ContextName, ""),
    "token_file": (TokenFile, ""),
    "ca_cert": (CaCert, ""),
    "insecure": (Insecure, False),
    "timeout": (Timeout, 30.0),
}
CONNECTION_OPTIONS = tuple(_CONNECTION)
# of every command that writes, unless it has one of its own
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY

_WHY: Options = {"reason": (Reason, "")}


_of_program = ConnectionOptions()


def use_for_all(options: ConnectionOptions) -> None:
    """What was said before the command's name: `vcctl --server … queue list`.

    What is said behind it goes before.
    """
    global _of_program
    _of_program = options


def new_app(help: str) -> typer.Typer:
    """A group of commands; plain help, so that it reads the same in a pipe and loads nothing."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )


def command(
    app: typer.Typer,
    name: str,
    *examples: str,
    hidden: bool = False,
    options: Options | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command.

    Each example is a line, `# what it does` before it where that needs words.

    `options` are those it shares with others; the function takes them as `**given`.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
        settings = {"help_option_names": ["--help", "-h"]}
        words = inspect.cleandoc(function.__doc__ or "")
        app.command(name, help=words, epilog=epilog, hidden=hidden, context_settings=settings)(
            _with_connection(function, options or {})
        )
        return function

    return register


def _with_connection(function: Callable[..., None], shared: Options) -> Callable[..., None]:
    """The same function with the shared options and those of the connection after its own."""

    signature = inspect.signature(function, eval_str=True)
    taken = {*signature.parameters, *shared}
    why: Options = {}
    if "dry_run" in taken and "reason" not in taken:
        why = _WHY

    @functools.wraps(function)
    def run(**given: Any) -> None:
        connection = {}
        for name in _CONNECTION:
            value = given.pop(name)
            if value != _CONNECTION[name][1]:
                connection[name] = value
        reason = ""
        if why:
            reason = given.pop("reason")
        words = options
        if given.get("file"):
            words = frozenset()  # the file names its own fields
        client.use(replace(_of_program, **connection), reason, words)
        function(**given)

    own = _own_parameters(signature)
    more = _parameters_from({**shared, **why, **_CONNECTION})
    options = _words_of([*own, *more])
    parameters = [parameter.replace(kind=_KEYWORD_ONLY) for parameter in own]
    signature = signature.replace(parameters=[*parameters, *more])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in signature.parameters.values()
    }
    return run


def _own_parameters(signature: inspect.Signature) -> list[inspect.Parameter]:
    own: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            own.append(parameter)
    return own


def _parameters_from(options: Options) -> list[inspect.Parameter]:
    parameters: list[inspect.Parameter] = []
    for name, (annotation, default) in options.items():
        parameters.append(
            inspect.Parameter(name, _KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return parameters


def _words_of(parameters: Iterable[inspect.Parameter]) -> frozenset[str]:
    """The long names of the options, such as --weight."""
    found: set[str] = set()
    for parameter in parameters:
        for declared in getattr(parameter.annotation, "__metadata__", ()):
            # typer keeps the first there
            names = (
                getattr(declared, "default", ""),
                *(getattr(declared, "param_decls", None) or ()),
            )
            found |= {name for name in names if isinstance(name, str) and name.startswith("--")}
    return frozenset(found)
