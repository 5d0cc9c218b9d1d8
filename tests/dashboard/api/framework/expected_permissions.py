"""For each route and action, the least role that is let through."""

from __future__ import annotations

# The first of each pair is for the role's own subtree, the second for another's. "never" is nobody
# but the cluster admin. "hidden" means that the object is not there for them. Lists and reads of
# one's own answer with what there is to see.
QUEUE_READ = ("viewer", "hidden")
QUEUE_OPERATE = ("admin", "hidden")
ANY = ("nothing", "nothing")
MEMBER = ("viewer", "viewer")
CLUSTER = ("never", "never")

EXPECTED: dict[str, dict[str, tuple[str, str]]] = {
    "queues": {
        "list": ANY,
        **dict.fromkeys(
            ("retrieve", "children", "tree", "history", "export", "deletion"), QUEUE_READ
        ),
        **dict.fromkeys(("open", "close", "suspend", "resume"), QUEUE_OPERATE),
        "create": ("admin", "hidden"),
        "update": ("never", "hidden"),  # the weight is the parent's admin's
        "partial_update": ("never", "hidden"),
        **dict.fromkeys(("destroy", "keep"), ("never", "hidden")),
    },
    "jobs": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "create": ("submitter", "hidden"),
        **dict.fromkeys(
            ("update", "partial_update", "destroy", "suspend", "resume", "restart", "cancel"),
            ("admin", "hidden"),
        ),
        "follow_log": ("admin", "hidden"),
    },
    "podgroups": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "explain": QUEUE_READ,
        "timeline": QUEUE_READ,
        "create": ("submitter", "hidden"),
        **dict.fromkeys(("update", "partial_update", "destroy"), ("admin", "hidden")),
    },
    "pods": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "log": ("admin", "hidden"),
        "follow_log": ("admin", "hidden"),
        "create": ("submitter", "hidden"),
        "destroy": ("admin", "hidden"),
    },
    "nodes": {
        **dict.fromkeys(("list", "retrieve", "waiting"), MEMBER),
        **dict.fromkeys(
            (
                "create",
                "update",
                "partial_update",
                "destroy",
                "cordon",
                "uncordon",
                "drain",
                "lose",
                "bring_back",
            ),
            CLUSTER,
        ),
    },
    "namespaces": {
        **dict.fromkeys(("list", "retrieve"), MEMBER),
        **dict.fromkeys(("create", "update", "partial_update", "destroy"), CLUSTER),
    },
    "priorityclasses": {
        **dict.fromkeys(("list", "retrieve"), MEMBER),
        **dict.fromkeys(("create", "update", "partial_update", "destroy"), CLUSTER),
    },
    "commands": {"list": ANY, "retrieve": QUEUE_READ, "create": ("admin", "hidden")},
    "sessions": {"list": MEMBER, "retrieve": MEMBER, "scenario": CLUSTER},
    "decisions": {"list": ANY, "retrieve": QUEUE_READ},
    "evictions": {"list": ANY, "retrieve": QUEUE_READ},
    "comparisons": {"list": ANY, "retrieve": QUEUE_READ},
    "events": {"list": ANY, "retrieve": QUEUE_READ},
    "audit": {
        "list": ("admin", "admin"),
        "retrieve": ("admin", "hidden"),
        "revert": ("admin", "hidden"),
    },
    "users": {
        **dict.fromkeys(("list", "retrieve", "preferences", "change_preferences", "password"), ANY),
        **dict.fromkeys(("create", "partial_update", "destroy", "reset_second_factor"), CLUSTER),
    },
    "groups": {
        "list": ANY,
        "retrieve": ("hidden", "hidden"),
        **dict.fromkeys(("create", "partial_update", "destroy"), CLUSTER),
    },
    "grants": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "create": ("admin", "hidden"),
        "destroy": ("admin", "hidden"),
    },
    "groupmappings": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "create": ("admin", "hidden"),
        "destroy": ("admin", "hidden"),
    },
    "tokens": dict.fromkeys(("list", "retrieve", "create", "destroy"), ANY),
    "views": dict.fromkeys(
        ("list", "retrieve", "create", "partial_update", "destroy", "count"), ANY
    ),
    "bulkruns": {
        **dict.fromkeys(("list", "retrieve", "items"), ANY),
        "create": ("admin", "hidden"),
        "retry": (
            "submitter",
            "submitter",
        ),  # what was refused of one's own run: each job asks again
    },
    "policyversions": dict.fromkeys(("list", "retrieve"), MEMBER),
    "changes": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "create": ("admin", "hidden"),
        # drafts of somebody else are changed by cluster admins, and applied by who may edit them
        **dict.fromkeys(("partial_update", "destroy", "add", "remove"), ("never", "hidden")),
        "refresh": ("never", "hidden"),
        "apply": ("admin", "hidden"),
        "revert": ("admin", "hidden"),
    },
    "windows": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "create": ("admin", "hidden"),
        **dict.fromkeys(("apply", "revert", "resume", "suspend"), ("admin", "hidden")),
        **dict.fromkeys(("abandon", "collect"), ("admin", "hidden")),
    },
    "previews": {
        **dict.fromkeys(("list", "retrieve"), ANY),
        "create": ("admin", "hidden"),
        "destroy": ANY,  # one's own
    },
    "notices": {"list": ANY, **dict.fromkeys(("retrieve", "partial_update"), QUEUE_READ)},
    "noticerules": dict.fromkeys(("list", "retrieve", "create", "destroy"), ANY),
    "noticechannels": dict.fromkeys(
        ("list", "retrieve", "create", "destroy", "test", "rotate"), ANY
    ),
    "noticedeliveries": dict.fromkeys(("list", "retrieve"), ANY),
    "inbox": dict.fromkeys(("get", "patch"), ANY),
    "plans": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "create": ("admin", "hidden"),
        "destroy": ("admin", "hidden"),
    },
    "occurrences": {
        "list": ANY,
        "retrieve": QUEUE_READ,
        "apply": ("admin", "hidden"),
        "skip": ("admin", "hidden"),
    },
    "comparison": {"get": MEMBER},
    "forecasts": {"get": MEMBER},
    "jobs/facets": {"get": ANY},
    "jobs/groups": {"get": ANY},
    "queuefigures": {"get": ANY},
    "loans": {"get": MEMBER},
    "usage": {"get": MEMBER},
    "timeline": {"get": MEMBER},
    "usage/statement": {"get": MEMBER, "post": ("admin", "hidden")},
    "prices": {"get": MEMBER, "put": CLUSTER, "delete": CLUSTER},
    "fairness": {"get": MEMBER},
    "loans/history": {"get": MEMBER},
    "policy": {"get": MEMBER, "put": CLUSTER},
    "policy/presets": {"get": MEMBER},
    "policy/validate": {"post": MEMBER},
    "cluster": {"get": MEMBER, "patch": CLUSTER},
    "cluster/fragmentation": {"get": MEMBER},
    "cluster/largest-gangs": {"get": MEMBER},
    "cluster/pause": {"post": CLUSTER},
    "cluster/resume": {"post": CLUSTER},
    "configuration": {"get": CLUSTER},
    "validate": {"post": MEMBER},
    "apply": {"post": ("submitter", "hidden")},
    "forecast": {"post": ("submitter", "hidden")},
    "sample": {"post": CLUSTER},
}
