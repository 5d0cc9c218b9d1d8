"""Random lives of queues through the REST API and the webhooks, compared step by step with an
oracle written from the rules (docs/origins.md).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from django.core.cache import cache
from django.test import Client

from scheduler.models import Command, Queue
from scheduler.services.queues.states import refresh_states
from tests.dashboard.api.conftest import Caller, job, node
from tests.dashboard.reviews import answer, review
from tests.oracles.queue_book import DEFAULT, ROOT, Amounts, Book, Entry

pytestmark = pytest.mark.django_db

NAMES = [f"q{number}" for number in range(9)]
COMMANDS = ["Open", "Close", "Suspend", "Resume"]
WISHES = {"Open": "Open", "Close": "Closed", "Suspend": "Suspended", "Resume": "Open"}
_PARTS = ("capability", "deserved", "guarantee")


def a_job(name: str, queue: str) -> tuple[str, str, dict[str, Any]]:
    return "jobs", "spec.queue", job(name, queue)


def a_podgroup(name: str, queue: str) -> tuple[str, str, dict[str, Any]]:
    return (
        "podgroups",
        "spec.queue",
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"queue": queue, "minMember": 1},
        },
    )


def a_bare_pod(name: str, queue: str) -> tuple[str, str, dict[str, Any]]:
    metadata = {"name": name, "namespace": "default", "annotations": {QUEUE_ANNOTATION: queue}}
    return (
        "pods",
        f"metadata.annotations[{QUEUE_ANNOTATION}]",
        {"metadata": metadata, "spec": {"schedulerName": "volcano", "containers": []}},
    )


QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
WORK = (a_job, a_job, a_podgroup, a_bare_pod)


class Life:
    """One installation and the book kept beside it.

    Each step asks the webhook, then the API, and compares both with the book.
    """

    def __init__(self, admin: Caller, seed: int) -> None:
        self.admin = admin
        self.dice = random.Random(seed)
        self.book = Book()
        self.work: dict[str, str] = {}  # the path of what lives, and its queue
        self.number = 0
        self.webhook = Client()

    def step(self) -> None:
        steps: list[Callable[[], None]] = [
            self.create,
            self.edit,
            self.move,
            self.command,
            self.submit,
            self.finish,
            self.delete,
        ]
        (chosen,) = self.dice.choices(steps, [20, 8, 12, 40, 25, 10, 8])
        cache.clear()  # no limits on how much may be asked: that is tested elsewhere
        chosen()
        self.compare()

    def compare(self) -> None:
        rows = self.admin.get("queues/?page_size=1000")["results"]
        shown = {row["metadata"]["name"]: row for row in rows}
        states = {
            name: tuple(row["status"][key] for key in ("state", "closedBy", "suspendedBy"))
            for name, row in shown.items()
        }
        assert states == self.book.standings()
        assert {name: row["spec"]["state"] for name, row in shown.items()} == {
            name: e.wish for name, e in self.book.queues.items()
        }
        for name, row in shown.items():
            assert row["status"]["pending"] == self.book.live.get(name, 0)
            assert row["status"]["subtree"]["pending"] == sum(
                self.book.live.get(queue, 0) for queue in self.book.subtree(name)
            )

    # Queues.

    def amounts(self) -> Amounts:
        chosen = self.dice.sample(
            ["cpu", "nvidia.com/gpu"], self.dice.choices([0, 1, 2], [5, 3, 1])[0]
        )
        return {
            resource: self.dice.choice(
                [0, 1, 2, 3, 4, 6, 8, 30, -1 if self.dice.random() < 0.1 else 5]
            )
            for resource in chosen
        }

    def any_queue(self) -> str:
        return self.dice.choice(sorted(self.book.queues))

    def own_queue(self) -> str | None:
        own = sorted(set(self.book.queues) - {ROOT, DEFAULT})
        return self.dice.choice(own) if own else None

    def create(self) -> None:
        parent = self.dice.choice(
            [self.any_queue(), self.any_queue(), self.any_queue(), "ghost", ROOT]
        )
        wish = self.dice.choices(["Open", "Closed", "Suspended"], [6, 1, 1])[0]
        entry = Entry(
            self.dice.choice(NAMES),
            parent,
            wish,
            self.dice.choice([1, 2, 65535, 65536, 7]),
            **self.quotas(),
        )
        expected = self.book.refusals(entry, None)
        asked = manifest(entry)
        told = self.ask_webhook("CREATE", asked, None)
        if (
            entry.name not in self.book.queues
        ):  # one that is stored already is judged by the webhook as if it were new
            assert told == expected
        body = self.admin.ask("POST", "queues/", asked)
        self.expect_answer(201, body, expected)
        if not expected:
            self.book.queues[entry.name] = entry
            assert {warning["code"] for warning in body["warnings"]} & {
                "parent_closed",
                "parent_suspended",
            } == self.inherits(entry.name)

    def quotas(self) -> dict[str, Amounts]:
        return {part: self.amounts() for part in _PARTS}

    def inherits(self, name: str) -> set[str]:
        _, closed_by, suspended_by = self.book.standing(name)
        return ({"parent_closed"} if closed_by else set()) | (
            {"parent_suspended"} if suspended_by else set()
        )

    def edit(self) -> None:
        name = self.own_queue()
        if name:
            part = self.dice.choice(_PARTS)
            self.change(
                self.book.queues[name], replace(self.book.queues[name], **{part: self.amounts()})
            )

    def move(self) -> None:
        name = self.own_queue()
        if name:
            old = self.book.queues[name]
            self.change(
                old,
                replace(
                    old,
                    parent=self.dice.choice(
                        [self.any_queue(), self.any_queue(), ROOT, name, "ghost"]
                    ),
                ),
            )

    def change(self, old: Entry, new: Entry) -> None:
        expected = self.book.refusals(new, old)
        assert self.ask_webhook("UPDATE", manifest(new), manifest(old)) == expected
        body = self.admin.ask("PUT", f"queues/{new.name}/", manifest(new))
        self.expect_answer(200, body, expected)
        if not expected:
            self.book.queues[new.name] = new
            assert body["changed"] == (old != new)
            if new.parent != old.parent:
                codes = {warning["code"] for warning in body["warnings"]}
                assert codes & {"parent_closed", "parent_suspended"} == self.inherits(new.name)

    def ask_webhook(
        self,
        operation: str,
        new: dict[str, Any] | None,
        old: dict[str, Any] | None,
        kind: str = "queues",
    ) -> set[tuple[str, str]]:
        version = self.dice.choice(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
        response = answer(
            self.webhook,
            kind,
            review(kind, operation, new, old, version=version, dryRun=self.dice.random() < 0.5),
        )
        if response["allowed"]:
            return set()
        return {
            (cause["reason"], cause["field"]) for cause in response["status"]["details"]["causes"]
        }

    def expect_answer(
        self,
        good: int,
        body: dict[str, Any],
        expected: set[tuple[str, str]],
    ) -> None:
        if not expected:
            assert self.admin.last.status_code == good, body
            return
        assert self.admin.last.status_code in (400, 409), (body, expected)
        assert {
            (violation["ruleId"], violation["field"]) for violation in body["violations"]
        } == expected
        assert all(violation["message"] for violation in body["violations"])

    # Commands, through every door that gives them.

    def command(self) -> None:
        name = self.any_queue()
        command = self.dice.choice(COMMANDS)
        ruling = self.book.rule_on(name, command)
        warned = self.book.warnings_of(name, command) if ruling.wish else set()
        before = self.book.standings()
        rehearsed = self.rehearsed(name, command)
        door = self.dice.choice(
            [
                self.by_path,
                self.by_row,
                self.by_manifest,
                *([self.by_patch] if self.is_wish(name, command) else []),
            ]
        )
        body = door(name, command)
        if ruling.refused:
            assert (self.admin.last.status_code, body["violations"][0]["ruleId"]) == (
                409,
                ruling.refused,
            ), body
            assert ruling.first in body["detail"]
            return
        assert self.admin.last.status_code == 200, body
        assert Command.objects.latest("id").result == ("Done" if ruling.wish else "NoOp")
        self.book.queues[name].wish = ruling.wish or self.book.queues[name].wish
        if door in (self.by_path, self.by_row):
            assert {**rehearsed, "dryRun": False} == body
            assert (body["changed"], bool(body["message"])) == (bool(ruling.wish), True)
            assert {warning["code"] for warning in body["warnings"]} == warned
            assert {row["name"]: (row["from"], row["to"]) for row in body["queues"]} == self.turned(
                before
            )

    def rehearsed(self, name: str, command: str) -> Any:
        rows = Command.objects.count()
        body = self.admin.ask("POST", f"queues/{name}/{command.lower()}/?dry_run=true")
        assert Command.objects.count() == rows
        return body

    def turned(self, before: dict[str, tuple[str, str, str]]) -> dict[str, tuple[str, str]]:
        after = self.book.standings()
        return {
            name: (before[name][0], after[name][0])
            for name in after
            if before[name][0] != after[name][0]
        }

    def by_path(self, name: str, command: str) -> Any:
        return self.admin.ask("POST", f"queues/{name}/{command.lower()}/")

    def by_row(self, name: str, command: str) -> Any:
        action = self.dice.choice([f"{command}Queue", command])
        return self.admin.ask(
            "POST",
            "commands/",
            {"action": action, "target": {"kind": "Queue", "name": name}, "reason": "try"},
        )

    def is_wish(self, name: str, command: str) -> bool:
        """Whether a change of `spec.state` can say it: the wish must be another one, and Open ends
        what it finds there.
        """
        own = self.book.queues[name].wish
        return (
            name != ROOT
            and own != WISHES[command]
            and own != {"Open": "Suspended", "Resume": "Closed"}.get(command)
        )

    def by_patch(self, name: str, command: str) -> Any:
        return self.admin.ask("PATCH", f"queues/{name}/", {"spec": {"state": WISHES[command]}})

    def by_manifest(self, name: str, command: str) -> Any:
        order = {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": f"{name}-"},
        }
        target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": name}
        return self.admin.ask(
            "POST", "apply/", {**order, "action": f"{command}Queue", "target": target}
        )

    # Work.

    def submit(self) -> None:
        queue = self.dice.choice([self.any_queue(), self.any_queue(), self.any_queue(), "ghost"])
        self.number += 1
        kind, field, asked = self.dice.choice(WORK)(f"w{self.number}", queue)
        expected = {(rule, field) for rule in self.book.work_refusals(queue)}
        assert self.ask_webhook("CREATE", asked, None, kind) == expected
        self.expect_answer(201, self.admin.ask("POST", f"{kind}/", asked), expected)
        if not expected:
            self.work[f"{kind}/default/w{self.number}/"] = queue
            self.book.live[queue] = self.book.live.get(queue, 0) + 1

    def finish(self) -> None:
        if not self.work:
            return
        path = self.dice.choice(sorted(self.work))
        if path.startswith("jobs/"):
            self.admin.post(path + self.dice.choice(["cancel/", "suspend/"]))
        else:
            self.admin.delete(path)
        self.book.live[self.work.pop(path)] -= 1

    def delete(self) -> None:
        name = self.any_queue()
        cascade = self.dice.random() < 0.5
        expected = self.book.blockers(name, cascade=cascade)
        if not cascade:
            told = self.ask_webhook("DELETE", None, manifest(self.book.queues[name]))
            assert {rule for rule, _ in told} == {rule for rule, _ in expected}
        body = self.admin.ask("DELETE", f"queues/{name}/?cascade={'true' if cascade else 'false'}")
        if expected:
            assert self.admin.last.status_code == 409, body
            assert {
                (violation["ruleId"], violation["queue"]) for violation in body["violations"]
            } == expected
            return
        doomed = self.book.subtree(name) if cascade else [name]
        assert set(body["deleted"]) == set(doomed)
        for queue in doomed:
            del self.book.queues[queue]


def manifest(entry: Entry) -> dict[str, Any]:
    amounts = {
        part: {resource: str(amount) for resource, amount in getattr(entry, part).items()}
        for part in _PARTS
    }
    spec = {"parent": entry.parent, "weight": entry.weight, "state": entry.wish, **amounts}
    spec["guarantee"] = {"resource": amounts["guarantee"]}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": entry.name},
        "spec": spec,
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_random_life_goes_by_the_book(admin: Caller, seed: int):
    live_by_the_book(admin, seed, steps=60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 112))
def test_a_long_random_life_goes_by_the_book(admin: Caller, seed: int):
    live_by_the_book(admin, seed, steps=250)


def live_by_the_book(admin: Caller, seed: int, steps: int) -> None:
    life = Life(admin, seed)
    if seed % 2:
        admin.post("nodes/", node("n1", cpu="16", **{"nvidia.com/gpu": "8"}), expect=201)
        life.book.total = {"cpu": 16, "nvidia.com/gpu": 8}
    for _ in range(steps):
        life.step()


@pytest.mark.parametrize("seed", range(200, 204))
def test_what_is_exported_and_applied_elsewhere_is_the_same_tree(admin: Caller, seed: int):
    life = Life(admin, seed)
    for _ in range(25):
        life.dice.choice([life.create, life.create, life.move, life.command])()
    told = [admin.get(f"queues/{name}/") for name in sorted(life.book.queues)]
    exported = admin.get("queues/root/export/", Accept="application/yaml")

    root = Queue.objects.get(name=ROOT)
    Queue.objects.exclude(pk=root.pk).update(parent=root)
    Queue.objects.exclude(name__in=(ROOT, DEFAULT)).delete()
    Queue.objects.update(wish="Open", capability={}, deserved={}, guarantee={})
    refresh_states()
    admin.apply(yaml.safe_dump_all(exported))

    life.compare()
    again = [admin.get(f"queues/{name}/") for name in sorted(life.book.queues)]
    assert [(row["metadata"]["name"], row["spec"]) for row in again] == [
        (row["metadata"]["name"], row["spec"]) for row in told
    ]
