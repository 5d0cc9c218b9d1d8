"""The tables of docs/performance.md: every aim, and which row of a run tells of it."""

from __future__ import annotations

from collections.abc import Iterable

from tests.bench.lines import (
    ANSWERED_P99,
    CPU,
    CPU_SECONDS,
    EXPONENT,
    FOR_A_GANG,
    FOR_AN_EVENT,
    LOST,
    MEMORY,
    OF_EMPTY,
    P99,
    P99_OF_EMPTY,
    P99_OF_IDLE,
    PER_SECOND,
    SERVER,
    SHARE,
    SLOWEST,
    SORTING,
    TIMES,
    TIMES_THE_FLOOR,
    WAITED_P99,
    WALL,
    WALL_SECONDS,
    Line,
)

# The API

_EMPTY = "an empty view with one SELECT 1"
_LISTS = ("queues/, the first 100 of 1,000", "queues/?page_size=1000", "jobs/, a page of 100")
_SUBMIT = "submit a gang of 4"
_ASKED = (*_LISTS, _SUBMIT, "explain")


def _requests(after: str, words: str, what: Iterable[str] = _LISTS) -> list[Line]:
    """By processor time: a clock has the same costs of a socket on both sides of a ratio."""
    return [
        Line(f"{each}: processor, {words}", "requests", f"{each}{after}", OF_EMPTY, 2)
        for each in what
    ]


API = (
    Line("the empty view itself: idle p99", "api", f"idle: {_EMPTY}", P99),
    *(Line(f"{what}: idle p99", "api", f"idle: {what}", P99_OF_EMPTY, 2) for what in _ASKED),
    *(
        Line(
            f"{what}: p99 during sessions, of its idle one",
            "api",
            f"during sessions: {what}",
            P99_OF_IDLE,
            2,
        )
        for what in _ASKED
    ),
    *_requests("", "nothing written since"),
    *_requests(", after a submit", "right after a submit"),
    Line(f"{_SUBMIT}: processor", "requests", _SUBMIT, OF_EMPTY),
    Line("one queue: processor", "requests", "one queue", OF_EMPTY),
)

# Writes


def _queue_writes(database: str) -> list[Line]:
    lines = []
    for what in ("create", "patch", "close"):
        label = f"one {what} beside 1,000 queues, {database}"
        row = f"{database}: one {what}, 1000 queues there"
        lines.append(Line(label, "queue-writes", row, CPU, 10))
        if database == "PostgreSQL":
            lines.append(Line(f"{label}: the server", "queue-writes", row, SERVER))
    return lines


def _from_one_post(label: str, what: str, aim: float) -> list[Line]:
    return [
        Line(f"{label}, by the clock", "job-writes", what, WALL_SECONDS, aim),
        Line(f"{label}: our processor time", "job-writes", what, CPU_SECONDS),
        Line(f"{label}: the server's", "job-writes", what, SERVER),
    ]


def _submits(rate: int, seconds: int, aim: float) -> list[Line]:
    what = f"{rate} submits a second for {seconds} s, by HTTP"
    label = f"{rate} submits a second for {seconds} s"
    return [
        Line(f"{label}: answered", "submits", what, PER_SECOND, rate * 0.99, at_least=True),
        Line(f"{label}: p99 from submit to place", "submits", what, WAITED_P99, aim),
        Line(f"{label}: p99 of the answer", "submits", what, ANSWERED_P99),
    ]


WRITES = (
    *_queue_writes("SQLite"),
    *_queue_writes("PostgreSQL"),
    Line(
        "1,000 queues created by one POST, PostgreSQL",
        "queue-writes",
        "PostgreSQL: 1000 queues created by one POST",
        CPU,
    ),
    Line(
        "1,000 queues applied from one file, PostgreSQL",
        "queue-writes",
        "PostgreSQL: 1000 queues applied from one file",
        CPU,
    ),
    *_from_one_post("a job of 100,000 pods by one POST", "a job of 100000 pods by one POST", 3),
    Line(
        "making its pods: the longest that others wait, by the clock",
        "job-writes",
        "the next of 100000 pods made, a step",
        SLOWEST,
    ),
    *_from_one_post("1,000 jobs by one POST", "1000 jobs by one POST", 2),
    *_submits(100, 15, 2000),
    *_submits(500, 20, 2000),
)

# Pages and sockets

_MANY = "10,000 sockets on two web processes"

PAGES = (
    Line(
        "first paint of the tree of 1,048 queues",
        "console",
        "first paint of 1,048 queues",
        WALL,
        300,
    ),
    Line("that page, on the server", "console", "the whole page of 1,048 queues", WALL),
    Line("the same, of json.dumps", "console", "the whole page of 1,048 queues", TIMES, 5),
    Line(
        "the page of 10,408 queues, on the server",
        "console",
        "the whole page of 10,408 queues",
        WALL,
    ),
    Line("100 changed rows applied in the page", "console", "100 changed rows applied", WALL, 50),
    Line(
        "bytes of one changed queue, of the page and its rows",
        "console",
        "bytes of one changed queue",
        SHARE,
        1,
    ),
    Line(
        "1,000 sockets, commit to last, of bare ones",
        "console",
        "1,000 sockets, commit to last delivery",
        TIMES,
        2,
    ),
    Line(f"{_MANY}, from the request of a change to the last", "sockets", _MANY, WALL),
    Line("of these, sockets that missed something", "sockets", _MANY, LOST, 0),
)

# Large clusters

_LARGEST = "100,000 nodes, 1,000,000 running, 10,000 queues"
_CHANGED = "1,000 pods changed"
_QUIET = "nothing changed"


def _exponents(where: str, part: str, what: Iterable[str]) -> list[Line]:
    """From a tenth of everything to the whole: 1 is in step with the cluster, 0 is not at all."""
    return [
        Line(f"{where}, power of growth: {each}", part, f"growth of {each}", EXPONENT)
        for each in what
    ]


LARGE = (
    Line(f"engine: {_CHANGED}", "large", f"{_CHANGED}, {_LARGEST}", CPU, 250),
    Line(f"engine: {_QUIET}", "large", f"{_QUIET}, {_LARGEST}", CPU),
    Line("engine: all placed", "large", f"all pending placed, {_LARGEST}", CPU_SECONDS, 5),
    *_exponents("engine", "large", (_CHANGED, _QUIET, "all pending placed")),
    Line(
        f"PostgreSQL: {_CHANGED}, our process",
        "large-database",
        f"{_CHANGED}, {_LARGEST}",
        CPU,
        250,
    ),
    Line(f"{_CHANGED}, the server", "large-database", f"{_CHANGED}, {_LARGEST}", SERVER),
    Line(f"PostgreSQL: {_QUIET}, our process", "large-database", f"{_QUIET}, {_LARGEST}", CPU),
    Line(
        "PostgreSQL: cold start, our process",
        "large-database",
        f"cold start, {_LARGEST}",
        CPU_SECONDS,
        10,
    ),
    Line(
        "PostgreSQL: all read and all placed, our process",
        "large-database",
        f"all read and all pending placed, {_LARGEST}",
        CPU_SECONDS,
    ),
    *_exponents("PostgreSQL", "large-database", (_CHANGED, _QUIET, "cold start")),
    Line(
        "memory of the scheduler",
        "large-database",
        f"memory of the scheduler, {_LARGEST}",
        MEMORY,
        2000,
    ),
)

# Sessions on PostgreSQL

_SIZES = {"nodes": 3.0, "running": 1.3, "pending": 14.0, "queues": 1.6}


def _growth(label: str, what: str, aims: dict[str, float]) -> list[Line]:
    return [
        Line(f"{label}, ten times the {of}", "database-growth", f"{what}, 10 x {of}", TIMES, aim)
        for of, aim in aims.items()
    ]


def _session(label: str, what: str, aim: float) -> list[Line]:
    return [
        Line(f"{label}: our process", "database", what, CPU, aim),
        Line(f"{label}: the server", "database", what, SERVER),
    ]


DATABASE = (
    *_session("nothing changed", "no change (0 pods)", 2),
    *_session("100 pods changed", "100 changes (100 pods)", 10),
    Line(
        "10,000 placements, by the clock",
        "database",
        "full change: every pending pod placed",
        WALL,
        400,
    ),
    Line("read everything, by the clock", "database", "read everything (cold start)", WALL, 2000),
    Line(
        "write-back, of a bare update",
        "database",
        "write-back of pods, podgroups and decisions",
        TIMES_THE_FLOOR,
        3,
    ),
    *_growth("100 changed", "100 running pods changed", {**_SIZES, "running": 1.15}),
    *_growth("all placed", "every pending pod placed", _SIZES),
)

# The engine

_GANGS = "1,000 nodes, 1,000 pending in gangs, 10,000 running, 100 queues"
_SINGLES = "1,000 nodes, 1,000 pending one by one, 10,000 running, 100 queues"
_WIDE = "10,000 nodes, 500 pending in gangs, 100,000 running, 100 queues"
_RECLAIM = "10,000 full nodes, a gang of 16 reclaims from 100,000 running"


def _alike(label: str, what: str, aim: float) -> list[Line]:
    return [
        Line(f"{label}, `{preset}`", "alike", f"{what}, {preset}", CPU, aim)
        for preset in ("volcano", "fumarole")
    ]


ENGINE = (
    Line(f"session: {_GANGS}", "sessions", _GANGS, CPU, 40),
    Line(f"session: {_SINGLES}", "sessions", _SINGLES, CPU, 215),
    Line(f"session: {_WIDE}", "sessions", _WIDE, CPU, 130),
    Line(f"session: {_RECLAIM}", "sessions", _RECLAIM, CPU),
    Line(
        "reclaim of that gang: finding and sorting candidates",
        "actions",
        "reclaim, after the sort",
        SORTING,
    ),
    Line("the rest of that reclaim", "actions", "reclaim, after the sort", CPU),
    Line("the naive twin, gangs", "twin", "twin, gangs", TIMES, 200, at_least=True),
    Line("the naive twin, one by one", "twin", "twin, one by one", TIMES, 200, at_least=True),
    *(
        Line(f"ten times the {of}", "growth", f"10 x {of}", TIMES, aim)
        for of, aim in _SIZES.items()
    ),
    Line("200 gangs reclaim at once", "crowds", "reclaim, 200 gangs at once", CPU),
    Line("1,000 gangs preempt at once", "crowds", "preempt, 1000 gangs at once", CPU),
    Line(
        "beside 10,000 gangs that can never start, each",
        "crowds",
        "a session beside 10000 gangs that can never start",
        FOR_A_GANG,
    ),
    *_alike(
        "50 gangs reclaim from 4,000 alike pods",
        "50 gangs of 8 reclaim from 4,000 pods on 500 nodes",
        19,
    ),
    *_alike(
        "50 gangs preempt among 4,000 alike pods",
        "50 gangs of 8 preempt among 4,000 pods on 500 nodes",
        22.7,
    ),
    *_alike(
        "10,000 single pods, 5,000 empty nodes",
        "10,000 single pods, 5,000 empty nodes, 1 queue",
        400,
    ),
    *_alike("the same of 4 shapes in 10 queues", "10,000 single pods of 4 shapes, 10 queues", 400),
    Line("snapshot of 100,500 pods", "memory", "snapshot, 10,000 nodes, 100,500 pods", MEMORY),
    Line("a session on it", "memory", "session, 10,000 nodes, 100,500 pods", MEMORY),
)

# The mirror of a real cluster

MIRROR = (
    Line("the first look, an object", "mirror", "12,500 first look", FOR_AN_EVENT),
    Line("a pod that is bound", "mirror", "10,000 bound", FOR_AN_EVENT),
    Line("a pod that begins to run", "mirror", "10,000 running", FOR_AN_EVENT),
    Line(
        "a node's heartbeat that changes nothing",
        "mirror",
        "1,000 heartbeats of nodes that change nothing",
        FOR_AN_EVENT,
    ),
    Line(
        "a gang that is deleted with its podgroup, each event",
        "mirror",
        "2,100 pods and podgroups, a gang at a time",
        FOR_AN_EVENT,
    ),
    Line(
        "a queue that comes or goes",
        "mirror",
        "40 queues that come and go, one by one",
        FOR_AN_EVENT,
    ),
)

# The start

START = (
    Line("`make run` to the first page, by the clock", "start", "first page", WALL_SECONDS, 10),
    Line("the same, processor time of what lives then", "start", "first page", CPU_SECONDS),
    Line("memory of all processes (PSS)", "start", "memory, in sum", MEMORY, 400),
    *(
        Line(f"memory of {name}", "start", f"memory, {name}", MEMORY)
        for name in ("web", "scheduler", "worker", "beat", "supervisor", "Redis")
    ),
)

TABLES: dict[str, tuple[Line, ...]] = {
    "The API on PostgreSQL, as times of an empty view with one `SELECT 1`": API,
    "Writes": WRITES,
    "Pages and sockets": PAGES,
    "100,000 nodes, 1,000,000 running pods, 100,000 pending in gangs, 10,000 queues": LARGE,
    "Sessions on PostgreSQL, 10,000 nodes, 100,000 running pods": DATABASE,
    "The start of the sample": START,
    "The engine, processor time": ENGINE,
    "The mirror of a real cluster, processor time": MIRROR,
}
