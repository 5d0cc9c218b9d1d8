"""Fields of a request's body, one by one: for objects that are no Kubernetes manifests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dashboard.api.framework.errors import Refusal, bad_parameter


def given_fields(body: Any) -> Mapping[str, Any]:
    """The fields of the body, or those below its `spec`."""
    if not isinstance(body, Mapping):
        raise Refusal("The body must be an object.")
    spec = body.get("spec")
    if isinstance(spec, Mapping):
        return spec
    return body


def given_text(
    body: Any,
    name: str,
    default: str = "",
    *,
    required: bool = False,
    longest: int = 253,
) -> str:
    value = given_fields(body).get(name, default)
    if value is None:
        value = default
    if not isinstance(value, str) or len(value) > longest or "\x00" in value:
        message = f"{name} must be a text of at most {longest} characters."
        raise bad_parameter(f"spec.{name}", message)
    if required and not value:
        raise bad_parameter(f"spec.{name}", f"{name} must be given.")
    return value


def given_texts(value: Any, most: int) -> list[str] | None:
    """The value if it is a list of at most `most` texts, else None."""
    if not isinstance(value, list) or len(value) > most:
        return None
    if not all(isinstance(item, str) for item in value):
        return None
    return value


def refuse_unknown(given: Collection[str], known: Collection[str], message: str, fix: str) -> None:
    """`{}` in the message stands for the first field that is not known."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        name = unknown[0][:80]
        raise bad_parameter(name, message.format(name), fix)
