"""Where `vcctl` begins: the table of commands.

This is also the one place that turns an error into a sentence and an exit code.

Only what the command line names is loaded: a terminal should not wait for code that is not run.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer
from typer.exceptions import TyperException

from dashboard.cli import VERSION, output
from dashboard.cli.commands import (
    CaCert,
    ContextName,
    Insecure,
    Server,
    Timeout,
    TokenFile,
    new_app,
    use_for_all,
)
from dashboard.cli.light import lighten
from dashboard.cli.problems import ExitCode, Problem
from dashboard.cli.target import ConnectionOptions

HELP: Final = (
    "Queues, jobs and nodes of a Fumarole cluster, from a terminal. "
    "Without --server it speaks to the installation that make run started here."
)
# The modules whose commands make up a group; the last one has the group itself under the name
# given.
GROUPS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "queue": (("queues.write", "queues.state", "queues.read"), "app"),
    "job": (("jobs.run", "jobs.commands", "jobs.read", "jobs.logs"), "app"),
    "pod": (("jobs.pods", "jobs.logs"), "pods"),
    "node": (("cluster.room", "cluster.nodes"), "app"),
    "session": (("sessions.read",), "app"),
    "policy": (("sessions.policy",), "app"),
    "changes": (("files.changes", "files.plans"), "app"),
    "notices": (("accounts.notices",), "app"),
    "sign-on": (("accounts.sign_on",), "app"),
    "window": (("files.windows",), "app"),
    "contexts": (("accounts.login",), "contexts_app"),
}
# Commands without a group: which module registers them.
COMMANDS: Final = {
    "apply": "files.apply",
    "diff": "files.apply",
    "export": "files.apply",
    "whatif": "files.whatif",
    "cluster": "cluster.view",
    "pause": "cluster.pause",
    "unpause": "cluster.pause",
    "comparison": "sessions.comparison",
    "audit": "records.audit",
    "forecasts": "records.forecasts",
    "loans": "records.loans",
    "report": "records.report",
    "timeline": "records.timeline",
    "fairness": "records.fairness",
    "prices": "records.prices",
    "statement": "records.prices",
    "api": "raw",
    "mcp": "assistants",
    "login": "accounts.login",
    "whoami": "accounts.login",
    "completion": "shells",
}


def program(words: Sequence[str] = ()) -> typer.Typer:
    """All of vcctl.

    Or as much of it as `words` need, where their first one names a group or a command.
    """
    app = new_app(HELP)
    app.callback()(_root_options)
    if words:
        first = words[0]
    else:
        first = ""
    if first in GROUPS:
        app.add_typer(_load_group(first, words[1:]), name=first)
        return app
    if first in COMMANDS:
        _load_module(COMMANDS[first]).register(app)
        return app
    for name in GROUPS:
        app.add_typer(_load_group(name, words[1:]), name=name)
    for module in dict.fromkeys(COMMANDS.values()):
        _load_module(module).register(app)
    return app


def _load_module(module: str):  # type: ignore[no-untyped-def] # a module
    return importlib.import_module(f"dashboard.cli.{module}")


def _load_group(name: str, words: Sequence[str]) -> typer.Typer:
    modules, attribute = GROUPS[name]
    group: typer.Typer = getattr([_load_module(module) for module in modules][-1], attribute)
    wanted = []
    for command in group.registered_commands:
        if words and command.name == words[0]:
            wanted.append(command)
    if not wanted:
        return group
    lean = new_app(str(group.info.help))
    lean.registered_commands = wanted
    lean.callback()(_do_nothing)  # or a single command would lose its name
    return lean


def _do_nothing() -> None:
    pass


def _say_version(wanted: bool) -> None:
    if wanted:
        output.line(f"vcctl {VERSION}")
        raise typer.Exit


def _root_options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is.", is_eager=True, callback=_say_version
        ),
    ] = False,
    server: Server = "",
    context: ContextName = "",
    token_file: TokenFile = "",
    ca_cert: CaCert = "",
    insecure: Insecure = False,
    timeout: Timeout = 30.0,
) -> None:
    use_for_all(ConnectionOptions(server, context, token_file, ca_cert, insecure, timeout))


def main() -> None:
    arguments = sys.argv[1:]
    if "_VCCTL_COMPLETE" in os.environ:
        arguments = []
    run(program(arguments), "vcctl")


def run(app: typer.Typer, name: str, arguments: list[str] | None = None) -> None:
    """Run a program to its end; never returns."""
    if f"_{name.upper()}_COMPLETE" in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # an old terminal shows ? for what it has no letter for
            stream.reconfigure(errors="replace")
    sys.exit(exit_code(lambda: ready(app).main(arguments, prog_name=name, standalone_mode=False)))


def ready(app: typer.Typer) -> Any:
    """The program as it is run."""
    return lighten(typer.main.get_command(app))


def exit_code(act: Callable[[], object]) -> int:
    try:
        code = act()
        if sys.stdout is not None:  # whoever closed it wants no answer
            sys.stdout.flush()
        if isinstance(code, int):
            return code
        return ExitCode.DONE
    except Problem as problem:
        return _print_error(str(problem), problem.code)
    except typer.Abort:
        return _print_error("Nothing was changed.", ExitCode.REFUSED)
    except TyperException as error:
        return _usage_error(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _write_no_more()
        return ExitCode.DONE
    except OSError as error:
        _write_no_more()
        return _print_error(
            f"The answer cannot be written: {error.strerror or error}.", ExitCode.REFUSED
        )


def _write_no_more() -> None:
    """Or Python complains when it flushes at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(message: str, code: ExitCode) -> ExitCode:
    output.remark(message)
    return code


def _usage_error(error: TyperException) -> ExitCode:
    """What is wrong with the line, and where help is; a group without a command shows its help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return _print_error(error.format_message(), ExitCode.USAGE)
    message = error.format_message().rstrip()
    end = "."
    if message.endswith("?"):
        end = "?"
    hint = ""
    if context is not None:
        hint = f" {context.command_path} --help says how."
    return _print_error(f"{message.rstrip('.?')}{end}{hint}", ExitCode.USAGE)


def _run_short(name: str) -> None:
    from dashboard.cli.short import PROGRAMS

    run(PROGRAMS[name], name)


def vsub() -> None:
    _run_short("vsub")


def vjobs() -> None:
    _run_short("vjobs")


def vqueues() -> None:
    _run_short("vqueues")


def vcancel() -> None:
    _run_short("vcancel")


def vsuspend() -> None:
    _run_short("vsuspend")


def vresume() -> None:
    _run_short("vresume")
