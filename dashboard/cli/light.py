"""Typer checks every value by a library that takes longer to load than all the rest together.

What needs no check goes past it here.

This leans on two attributes of Typer that are not documented; where a version has them no longer,
everything is checked as Typer does it.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

_NO = object()


def lighten(command: Any) -> Any:
    """Give the command, and those below it, the short way for each parameter."""
    all_of_them = command.get_params

    def get_params(context: Any) -> Any:  # with --help, which is made only when it is asked for
        parameters = all_of_them(context)
        for parameter in parameters:
            if getattr(parameter, "_runtime_param", _NO) is None and hasattr(
                parameter, "type_descriptor"
            ):
                parameter._runtime_param = _Shortcut()
        return parameters

    command.get_params = get_params
    for below in getattr(command, "commands", {}).values():
        lighten(below)
    return command


class _Shortcut:
    """Lets through what already is what it should be; asks Typer about the rest."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        several = param.multiple or param.nargs == -1
        if several:
            done = _pass_texts(value, param)
        else:
            done = _pass_single(value, param)
        if done is not _NO:
            return done
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _pass_texts(value: Any, param: Any) -> Any:
    if value is None:
        return ()
    is_plain = param.type_descriptor.annotation == list[str] and isinstance(value, (tuple, list))
    if is_plain and all(isinstance(one, str) for one in value):
        return list(value)
    return _NO


def _pass_single(value: Any, param: Any) -> Any:
    wanted = param.type_descriptor.annotation
    info = param.type_descriptor.parameter_info
    if value is None or (value is param.default and not isinstance(value, str)):
        return value
    if wanted is str and isinstance(value, str):
        return value
    if (
        wanted is int
        and isinstance(value, str)
        and info.min is None
        and info.max is None
        and value.isascii()
        and value.isdigit()
    ):
        return int(value)
    if (
        isinstance(wanted, type)
        and issubclass(wanted, Enum)
        and value in tuple(member.value for member in wanted)
    ):
        return wanted(value)
    return _NO
