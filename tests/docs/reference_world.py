"""What the examples of docs/cli.md speak of, put back through the API where an example has changed
it.
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import yaml

from tests.running import PATIENCE_SECONDS

_QUEUES = ("train", "team-a", "team-b", "myqueue")
_JOBS = ("default/train", "research/train")
_FROM_A_FILE = "default/from-a-file"
_HOLDING = "default/holding"
_QUOTAS = "kind: Queue\nmetadata: {name: team-a}\nspec: {weight: 5}\n"
_MORE_QUOTAS = "kind: Queue\nmetadata: {name: team-b}\nspec: {weight: 3}\n"
_CHANGE_SET = re.compile(r"(vcctl changes \w+|--changes) 7\b")
_WINDOW = re.compile(r"(vcctl window \w+) 7\b")
_ENTRY = re.compile(r"(vcctl changes undo) 41\b")
_PLAN = re.compile(r"(vcctl changes unplan) 3\b")
_TURN = re.compile(r"(vcctl changes skip) 12\b")
_DAYS = {"2026-11-20": 2, "2026-11-23": 5}
"""Days of the examples, and how far ahead they are."""
_READING = {
    "list",
    "get",
    "view",
    "tree",
    "explain",
    "history",
    "children",
    "whoami",
    "export",
    "diff",
    "validate",
    "watch",
    "save",
}


def _day(ahead: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=ahead):%Y-%m-%d}"


class ReferenceWorld:
    def __init__(self, address: str, token: str, folder: Path, home: Path) -> None:
        self.token = token
        self.password = "rather-long-and-plain-7"
        self._address = address
        self._folder = folder
        self._home = home
        self._api = httpx.Client(
            base_url=f"{address}/api/v1/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=False,
        )
        self._manifest = (folder / "examples" / "reference.yaml").read_text()
        self._made = ""  # the queue that the line before made
        self._last: set[str] = set(_QUEUES)  # the words of the line before, if it changed something

    def kept_session(self) -> int:
        """The newest session that was kept as a scenario: documents call it 812.

        Only the last thirty are.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            for session in self._api.get("sessions/").raise_for_status().json()["results"]:
                number = session["metadata"]["name"]
                if self._api.get(f"sessions/{number}/scenario/").status_code == 200:
                    return int(number)
            time.sleep(0.5)
        raise AssertionError("no session was kept")

    def prepare(self) -> None:
        """The account and the files that examples name."""
        self._ask("POST", "users/", json={"username": "ann", "password": self.password})
        self._ask("POST", "grants/", json={"user": "ann", "role": "admin", "queue": "root"})
        (self._folder / "teams").mkdir()
        queues = [
            text
            for text in self._manifest.split("\n---\n")
            if yaml.safe_load(text)["kind"] == "Queue"
        ]
        for name in ("queues.yaml", "teams/queues.yaml"):
            (self._folder / name).write_text("\n---\n".join(queues))
        job = (self._folder / "examples" / "job.yaml").read_text()
        (self._folder / "job.yaml").write_text(job.replace("first-steps", "from-a-file"))
        (self._folder / "quotas.yaml").write_text(_QUOTAS)
        (self._folder / "more.yaml").write_text(_MORE_QUOTAS)
        (self._folder / "token.txt").write_text(self.token + "\n")

    def put_back_for(self, line: str) -> None:
        """As the line expects it: everything there and open, but not what it is about to make."""
        words = set(line.split())
        if self._last:
            self._put_back(self._last)
        self._last = set() if words & _READING else words
        self._sign_in_to_lab()
        self._made = _named(line) if line.startswith("vcctl queue create") else ""
        self._remove_queue(self._made)
        if line.startswith(("vcctl job run", "vsub")):
            self._remove_jobs([*_JOBS, _FROM_A_FILE])
        if line.startswith("vcctl queue delete") and "--close-first" not in words:
            self._close(words)
        self._do_what_is_taken_back(words)
        if line.startswith(("vcctl notices rotate", "vcctl notices test")):
            self._make_channel()

    def with_change_set(self, line: str) -> str:
        """The line with the number of a new change set, which documents call 7."""
        if not _CHANGE_SET.search(line):
            return line
        edit = yaml.safe_load(_QUOTAS)
        made = self._api.post("changes/", json={"name": "Quotas", "documents": [edit]})
        number = made.raise_for_status().json()["metadata"]["name"]
        if " revert " in line:
            self._ask("POST", f"changes/{number}/apply/", json={})
        return _CHANGE_SET.sub(rf"\1 {number}", line)

    def with_plan(self, line: str) -> str:
        """The line with days to come, and the numbers of a new plan and its turn."""
        for day, ahead in _DAYS.items():
            line = line.replace(day, _day(ahead))
        if " plan " in line or _PLAN.search(line) or _TURN.search(line):
            self._cancel_plans()
        if not _PLAN.search(line) and not _TURN.search(line):
            return line
        number = self.with_change_set("vcctl changes plan 7").split()[-1]
        body = {"changeSet": int(number), "begin": f"{_day(2)}T18:00"}
        made = self._api.post("plans/", json=body).raise_for_status().json()
        line = _PLAN.sub(rf"\1 {made['metadata']['name']}", line)
        return _TURN.sub(rf"\1 {made['status']['occurrences'][0]['number']}", line)

    def _cancel_plans(self) -> None:
        for plan in self._api.get("plans/?state=Active").raise_for_status().json()["results"]:
            self._ask("DELETE", f"plans/{plan['metadata']['name']}/")

    def with_entry(self, line: str) -> str:
        """The line with the number of an entry of the audit log, which documents call 41."""
        if not _ENTRY.search(line):
            return line
        self._ask("POST", "queues/team-a/suspend/", json={})
        asked = "audit/?queue=team-a&action=SuspendQueue"
        newest = self._api.get(asked).raise_for_status().json()["results"][0]
        self._last.add("team-a")  # to be resumed again
        return _ENTRY.sub(rf"\1 {newest['metadata']['name']}", line)

    def with_window(self, line: str) -> str:
        """The line with the number of a new safe window, which documents call 7."""
        if not _WINDOW.search(line):
            return line
        made = self._api.post("windows/", json={"queue": "team-a"}).raise_for_status().json()
        number = made["metadata"]["name"]
        changes = f"changes/{made['spec']['changeSet']}/"
        self._ask("POST", f"{changes}add/", json=[yaml.safe_load(_QUOTAS)])
        if " revert " in line:
            self._ask("POST", f"windows/{number}/apply/", json={})
        if " collect " in line:
            self._ask("DELETE", changes)
        return _WINDOW.sub(rf"\1 {number}", line)

    def _end_windows(self) -> None:
        for window in self._api.get("windows/?state=Open").raise_for_status().json()["results"]:
            self._ask("POST", f"windows/{window['metadata']['name']}/abandon/", json={})

    def _put_back(self, touched: set[str]) -> None:
        if "window" in touched:
            self._end_windows()
        self._remove_queue(self._made)  # it is made elsewhere in the tree
        if "pause" in touched:
            self._ask("POST", "cluster/resume/", json={})
        for order in ("return", "uncordon") if "node-1" in touched else ():
            self._api.post(f"nodes/node-1/{order}/", json={})
        for queue in touched & set(_QUEUES):
            self._api.delete(f"queues/{queue}/deletion/")
            self._api.post(f"queues/{queue}/open/", json={})
            self._api.post(f"queues/{queue}/resume/", json={})
        self._remove_jobs([*(job for job in _JOBS if self._is_spent(job)), _HOLDING, _FROM_A_FILE])
        self._ask(
            "POST",
            "apply/",
            content=self._manifest,
            headers={"Content-Type": "application/yaml"},
        )

    def _is_spent(self, job: str) -> bool:
        """It has ended, or an example made another one of its name."""
        answer = self._api.get(f"jobs/{job}/")
        if answer.status_code == 404:
            return False
        found = answer.json()
        return found["spec"]["queue"] != "default" or found["status"]["state"]["phase"] not in (
            "Pending",
            "Inqueue",
            "Running",
        )

    def _remove_jobs(self, jobs: list[str]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        for job in jobs:
            self._api.post(f"jobs/{job}/cancel/", json={})
            while self._api.delete(f"jobs/{job}/").status_code != 404:  # 409 while its pods leave
                assert time.monotonic() < deadline, job
                time.sleep(0.1)

    def _remove_queue(self, name: str) -> None:
        if name and self._api.post(f"queues/{name}/close/", json={}).is_success:
            self._ask("DELETE", f"queues/{name}/")

    def _close(self, names: set[str]) -> None:
        for queue in names & set(_QUEUES):
            self._ask("POST", f"queues/{queue}/close/", json={})

    def _do_what_is_taken_back(self, words: set[str]) -> None:
        orders = {"resume": "suspend", "vresume": "suspend", "restart": "cancel"}
        for word in words & orders.keys():
            for job in _JOBS:
                self._ask("POST", f"jobs/{job}/{orders[word]}/", json={})
        if "keep" in words:
            self._ask(
                "POST", "jobs/", json=_a_job_in("team-a")
            )  # or the queue would be gone at once
            self._ask("DELETE", "queues/team-a/?close_first=true")

    def _make_channel(self) -> None:
        """Unless it is there: examples add one of this name, and take it away."""
        room = {"kind": "Webhook", "name": "room", "target": "https://example.com/hook"}
        self._api.post("noticechannels/", json=room)

    def _sign_in_to_lab(self) -> None:
        contexts = self._home / ".config" / "fumarole" / "contexts.json"
        contexts.parent.mkdir(parents=True, exist_ok=True)
        lab = {"server": self._address, "token": self.token, "user": "admin"}
        contexts.write_text(json.dumps({"current": "", "contexts": {"lab": lab}}))

    def _ask(self, method: str, path: str, **more: object) -> None:
        answer = self._api.request(method, path, **more)  # type: ignore[arg-type]
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"


def _named(line: str) -> str:
    """What a line makes: `create NAME` or `create --name NAME`."""
    words = line.split()
    return (
        words[words.index("--name") + 1] if "--name" in words else words[words.index("create") + 1]
    )


def _a_job_in(queue: str) -> dict[str, object]:
    task = {
        "replicas": 1,
        "template": {
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
        },
    }
    namespace, name = _HOLDING.split("/")
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queue": queue, "tasks": [task]},
    }
