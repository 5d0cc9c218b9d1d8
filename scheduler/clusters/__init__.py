"""Where pods run: one small protocol, and one class for each kind of cluster, named in settings.

`docs/how-to/add-a-cluster.md` shows how to add one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

SIMULATED = "simulated"
CLUSTERS = {SIMULATED: "scheduler.clusters.simulated.SimulatedCluster"}
"""By name.

A setting may also give the dotted path of a class that keeps the protocol of `base.Cluster`.
"""


class UnknownCluster(ValueError):
    """The settings name a cluster that does not exist."""


def load_cluster(name: str) -> Any:
    """The class by its name or dotted path.

    Imported only now, so that what it needs has to be installed only where it is used.
    """
    module, _, attribute = CLUSTERS.get(name, name).rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        known = ", ".join(sorted(CLUSTERS))
        raise UnknownCluster(
            f"SCHEDULER_CLUSTER is “{name}”, which is neither {known} nor the dotted path of a "
            "class."
        ) from error
