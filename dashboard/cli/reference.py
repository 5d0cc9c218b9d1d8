"""docs/cli.md from the commands themselves: `python -m dashboard.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from dashboard.cli.commands import CONNECTION_OPTIONS
from dashboard.cli.main import HELP, program
from dashboard.cli.problems import MEANINGS
from dashboard.cli.short import PROGRAMS

_HEAD = """# The command line

<!-- Made from the commands: .venv/bin/python -m dashboard.cli.reference > docs/cli.md. A test compares. -->

{help} `make run` leaves it at `.venv/bin/vcctl`, signed in; `pip install .` installs it alone, without the server.

```sh
export PATH="$PWD/.venv/bin:$PATH"   # in the folder that make run was started in
vcctl queue tree
vcctl queue create --name myqueue --weight 10
vcctl queue suspend myqueue --reason "quota change"
```

The examples under each command speak of the queues and jobs of `examples/reference.yaml`, of a second server that was called `lab`,
and of a session 812; the tests run each of them on an installation that has these.

## Which server, and as whom

`vcctl` speaks to the first of these that is given: `--server`; `--context` or `VCCTL_CONTEXT`; `VCCTL_SERVER`; the context that
`vcctl login` made current; the installation on this machine, whose address and key `make run` leaves in `var/` (or in `FUMAROLE_VAR`).
The token is that of `--token-file`, `VCCTL_TOKEN`, `VCCTL_TOKEN_FILE` or the context. Contexts are kept in
`~/.config/fumarole/contexts.json` (or `VCCTL_CONFIG`), mode 0600.

## Exit codes

| Code | Meaning |
|---|---|
{codes}

## Output

In a pipe, `-o table` has Volcano's layout, byte for byte. A value that fills its column is still followed by a space. On a terminal the
same columns have colours, and trees have bars. `-o wide` adds columns, `-o json|yaml` gives the API's objects, `-o name` one name a line.

`-o jsonpath=TEMPLATE` and `-o custom-columns=TITLE:PATH,…` work as in kubectl wherever `-o json` does; `jsonpath-file=FILE` and
`custom-columns-file=FILE` read them from a file. A list is `{{"kind": "List", "items": […]}}`. Templates have `{{range .items[*]}}…{{end}}`, indexes and slices (`[0]`, `[-1]`, `[0:5:2]`),
unions (`['a','b']`), filters (`[?(@.spec.weight>2)]`), `..` and `{{"\n"}}`; a dot in a key is written `\\.`. Go templates are not read.

Answers go to standard output, warnings and errors to standard error. `NO_COLOR` switches colours off.

`vcctl` asks before it does something that cannot be undone. On a terminal it also asks before it closes or suspends a queue with
other people's work. `--yes` answers beforehand, and `--dry-run` only says what would happen. If nobody can answer, nothing is done
and the exit code is 2.

`--watch` repeats the same view, in place on a terminal. If the server goes away, it continues when the server is back. Ctrl-C ends it.

## Completion

```sh
eval "$(vcctl completion bash)"     # or zsh; in ~/.bashrc or ~/.zshrc to keep it
mkdir -p ~/.config/fish/completions
vcctl completion fish > ~/.config/fish/completions/vcctl.fish
```

Names of queues, jobs and nodes are completed from the server.

## Options that every command has

{connection}
"""


def reference() -> str:
    root: Any = typer.main.get_command(program())
    codes = "\n".join(f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items())
    some = root.commands["whoami"]
    texts = []
    for parameter in some.params:
        if parameter.name in CONNECTION_OPTIONS:
            texts.append(_option_text(parameter))
    connection = "\n".join(texts)
    parts = [_HEAD.format(help=HELP, codes=codes, connection=connection)]
    groups = set()
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            groups.add(name)
    for name in sorted(groups):
        parts += _group_lines(f"vcctl {name}", root.commands[name])
    for name in sorted(root.commands.keys() - groups):
        parts += _command_lines(f"vcctl {name}", root.commands[name], "##")
    parts.append("## Short forms\n\nAs Volcano's own: `-n` is the name, `-N` the namespace.\n")
    for name, app in PROGRAMS.items():
        parts += _command_lines(name, typer.main.get_command(app), "###")
    return "\n".join(parts).rstrip() + "\n"


def _group_lines(path: str, group: Any) -> Iterator[str]:
    yield f"## {path}\n\n{group.help}\n"
    for name, command in sorted(group.commands.items()):
        yield from _command_lines(f"{path} {name}", command, "###")


def _command_lines(path: str, command: Any, heading: str) -> Iterator[str]:
    own = []
    for parameter in command.params:
        if parameter.name not in CONNECTION_OPTIONS:
            own.append(parameter)
    arguments = [parameter for parameter in own if parameter.param_type_name == "argument"]
    usage = " ".join([path, *(_argument_text(one) for one in arguments), "[OPTIONS]"])
    yield f"{heading} {path}\n\n{command.help}\n\n```text\n{usage}\n```\n"
    options = []
    for parameter in own:
        if parameter.param_type_name == "option":
            options.append(_option_text(parameter))
    if options:
        yield "\n".join(options) + "\n"
    examples = []
    for line in (command.epilog or "").splitlines():
        if line.strip() not in ("\b", "Examples:", ""):
            examples.append(line.strip())
    yield "```sh\n" + "\n".join(examples) + "\n```\n"


def _argument_text(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper()).strip("[]")
    if parameter.required:
        return name
    return f"[{name}]"


def _option_text(parameter: Any) -> str:
    shortest_first = sorted([*parameter.opts, *parameter.secondary_opts], key=len)
    flags = ", ".join(f"`{flag}`" for flag in shortest_first)
    if parameter.metavar:
        value = f" `{parameter.metavar}`"
    else:
        value = ""
    default = parameter.default
    if default in (None, "", False, ()) or callable(default):
        default_words = ""
    else:
        default_words = f" Default: {_default_text(default)}."
    return f"- {flags}{value}: {parameter.help or ''}{default_words}"


def _default_text(default: Any) -> str:
    if isinstance(default, float):
        return f"{default:g}"
    return str(getattr(default, "value", default))


if __name__ == "__main__":
    print(reference(), end="")
