"""PodGroups of Kubernetes itself (`scheduling.k8s.io`), beside those of Volcano.

Both kinds may have the same name in one namespace. So the native one is kept under a name that no
object of Kubernetes can have, as kubectl writes it: "podgroups.scheduling.k8s.io/train".
"""

from __future__ import annotations

from typing import Final

NATIVE_PREFIX: Final = "podgroups.scheduling.k8s.io/"
_SHOWN_SUFFIX: Final = "_native"  # no name of Kubernetes has an underscore
_LONGEST_NAME: Final = 253


def stored_name(name: str) -> str:
    """Of a native podgroup, as it is kept beside the others."""
    return f"{NATIVE_PREFIX}{name}"


def native_name(stored: str) -> str:
    """What the cluster calls it; "" for a podgroup that is not native."""
    if stored.startswith(NATIVE_PREFIX):
        return stored.removeprefix(NATIVE_PREFIX)
    return ""


def shown_beside_namesake(name: str, uid: str) -> str:
    """What pages call it, if another podgroup or a job has its name."""
    shown = f"{name}{_SHOWN_SUFFIX}"
    if len(shown) > _LONGEST_NAME:
        return f"{uid}{_SHOWN_SUFFIX}"
    return shown
