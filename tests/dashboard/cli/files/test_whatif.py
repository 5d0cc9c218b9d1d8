"""vcctl whatif."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from dashboard.cli.files import whatif
from dashboard.cli.problems import ExitCode
from scheduler.models import Preview
from scheduler.services.change_sets.preview_runs import work_out_previews
from tests.dashboard.cli.conftest import Type
from tests.worlds import manifest, node, pass_time, run_session


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is at work while the command waits."""
    monkeypatch.setattr(whatif.time, "sleep", lambda _: work_out_previews())


def test_a_file_is_tried_out_and_nothing_is_changed(vcctl: Type, tmp_path: Path):
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl queue create a --weight 2")
    vcctl("vcctl job run -N train -q a")
    run_session()
    file = tmp_path / "set.yaml"
    file.write_text("kind: Queue\nmetadata: {name: a}\nspec: {deserved: {cpu: 4}}\n")

    told = vcctl(f"vcctl whatif -f {file} --minutes 10")

    assert "It looks " in told.out
    assert "Pods placed in the first session: 0 without it, 0 with it" in told.out
    assert "a: deserved cpu" in told.out
    assert vcctl("vcctl queue get a -o json").json["spec"]["deserved"] == {}
    status = vcctl(f"vcctl whatif -f {file} -o json").json["status"]
    assert status["state"] == "Done"


def test_gangs_that_lose_pods_with_their_node_are_named(vcctl: Type):
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl queue create a")
    vcctl("vcctl job run -N train -q a --replicas 2 --min 1")
    run_session()
    pass_time(10)

    told = vcctl("vcctl whatif --lose n1")

    assert "default/train loses 2 pods and does not run again in this time" in told.out


def test_a_lost_node_and_what_is_refused(vcctl: Type, tmp_path: Path):
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl queue create a")
    file = tmp_path / "set.yaml"
    file.write_text("kind: Queue\nmetadata: {name: b}\nspec: {parent: b}\n")

    assert vcctl("vcctl whatif --lose n1").code == 0
    assert vcctl("vcctl whatif --lose n9").code != 0
    assert vcctl("vcctl whatif").code != 0
    refused = vcctl(f"vcctl whatif -f {file}")
    assert refused.code != 0
    assert "its own parent" in refused.err


def test_a_job_is_tried_out_with_other_documents(vcctl: Type, tmp_path: Path):
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl queue create a")
    file = tmp_path / "job.yaml"
    job = manifest("train", "b", replicas=2)
    queue = {"kind": "Queue", "metadata": {"name": "b"}, "spec": {"weight": 2}}
    file.write_text(yaml.safe_dump_all([job, queue]))

    told = vcctl(f"vcctl whatif -f {file}")

    assert "default/train starts in the first session" in told.out
    assert "Run times: 1 declared, 0 learnt, 0 unknown" in told.out
    assert vcctl("vcctl job list -o json").json["items"] == []


def test_ctrl_c_cancels_it(vcctl: Type, monkeypatch: pytest.MonkeyPatch):
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    node("n1", cpu="8", memory="32Gi")
    monkeypatch.setattr(whatif.time, "sleep", interrupt)

    told = vcctl("vcctl whatif --lose n1")

    assert told.code == ExitCode.INTERRUPTED
    assert "cancelled" in told.err
    assert Preview.objects.get().state == "Cancelled"


def test_on_a_terminal_it_says_whether_it_is_queued_or_worked_out(
    vcctl: Type, monkeypatch: pytest.MonkeyPatch
):
    told: list[str] = []

    @contextmanager
    def working(_what: str) -> Iterator[Callable[[str], None]]:
        yield told.append

    def go_on(_seconds: float) -> None:
        if Preview.objects.filter(state="Waiting").update(state="Running", progress=0.4):
            return
        Preview.objects.update(state="Cancelled")

    node("n1", cpu="8", memory="32Gi")
    monkeypatch.setattr(whatif.output, "working", working)
    monkeypatch.setattr(whatif.time, "sleep", go_on)

    vcctl("vcctl whatif --lose n1")

    assert told == ["it is queued", "40% done"]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (130.0, 90.0, "starts in 90 s, 40 s earlier than without it"),
        (0.0, 600.0, "starts in 10 min, 10 min later than without it"),
        (None, 0.0, "starts in the first session, not in this time without it"),
        (7200.0, None, "does not start in this time; without it, in 2.0 h"),
    ],
)
def test_a_gang_that_starts_at_another_time_says_when(
    before: float | None, after: float | None, told: str
):
    move = {"podgroup": "lab/train", "before": before, "after": after}

    assert whatif._move_line(move) == f"lab/train {told}"


@pytest.mark.parametrize(
    ("start", "earliest", "latest", "told"),
    [
        (420.0, 540.0, 3720.0, "starts in 9 min to 62 min"),
        (60.0, 60.0, 60.0, "starts in 60 s"),
        (0.0, 0.0, 0.0, "starts in the first session"),
        (None, None, None, "does not start in this time"),
    ],
)
def test_a_job_that_is_tried_out_says_one_range(
    start: float | None, earliest: float | None, latest: float | None, told: str
):
    job = {"start": start, "earliest": earliest, "latest": latest}

    assert whatif._start_words(job) == told


@pytest.mark.parametrize(
    ("action", "beneficiary", "told"),
    [
        ("reclaim", "lab/urgent", "for lab/urgent"),
        ("reclaim", "", "for another queue"),
        ("shed", "", "with the rest of its gang, which has too few pods left"),
    ],
)
def test_a_pod_that_is_evicted_says_for_whom(action: str, beneficiary: str, told: str):
    loss = {"pod": "lab/p", "queue": "a", "action": action, "beneficiary": beneficiary}

    assert whatif._eviction_line(loss) == f"lab/p of a is evicted {told}"
