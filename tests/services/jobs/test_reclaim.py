"""Why a job does not reclaim, from the database to page, API and command line."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from scheduler.models import ClusterState, Eviction, Grant, PodGroup, PolicyVersion, Queue
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.jobs import reclaim
from scheduler.services.jobs.reclaim import why_no_reclaim
from scheduler.services.queues.states import refresh_states
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.work import signed_in, submitted, text
from tests.worlds import node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db

WHOLE_GANGS = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
    enableHierarchy: true
    arguments:
      admission: possible
configurations:
- name: reclaim
  arguments:
    wholeGangs: true
"""


@pytest.fixture(autouse=True)
def cluster() -> None:
    """vision has all 8 cores, of which language deserves 4."""
    reclaim.answers.forget()
    ensure_builtin_objects()
    ClusterState.objects.update(policy=PolicyVersion.objects.create(text=WHOLE_GANGS))
    node("n1", cpu="8", memory="32Gi")
    queue("vision", deserved={"cpu": "4"})
    queue("language", deserved={"cpu": "4"})
    refresh_states()
    get_user_model().objects.create(username="root", is_superuser=True)
    submitted("first", "vision", "vera", replicas=4)
    submitted("second", "vision", "vera", replicas=4)
    run_session()
    pass_time(10)


def waits(**vision: object) -> PodGroup:
    """A gang in language, while vision is so."""
    Queue.objects.filter(name="vision").update(**vision)
    submitted("new", "language", "lena", replicas=4)
    run_session(SessionRunner("test"))
    gang = PodGroup.objects.get(name="new")
    assert gang.phase in ("Pending", "Inqueue")
    return gang


def test_pods_that_their_queue_protects_are_told_of_with_the_time():
    gang = waits(min_run_seconds=1000)

    answer = why_no_reclaim(gang)

    assert answer is not None
    assert answer.code == "VictimsProtected"
    assert 900 < answer.figures["seconds"] <= 1000
    assert not Eviction.objects.exists()


def test_page_and_api_say_it():
    waits(reclaimable=False)
    reader = signed_in("root")

    page = text(reader.get("/jobs/default/new/"))
    told = reader.get("/api/v1/podgroups/default/new/explain/").json()

    words = "vision has 4 cpu more than it deserves, but it is not reclaimable."
    assert f"<strong>Reclaim:</strong> {words}" in page
    assert told["reclaim"] == {
        "code": "NotReclaimable",
        "message": words,
        "figures": {"resource": "cpu", "others": [{"queue": "vision", "excess": 4000}]},
    }
    assert told["lastEviction"] is None


def test_who_may_not_see_the_other_queue_is_not_told_of_it():
    waits(reclaimable=False)
    lena = get_user_model().objects.create(username="lena")
    Grant.objects.create(user=lena, role="viewer", queue=Queue.objects.get(name="language"))
    reader = signed_in("lena")

    page = text(reader.get("/jobs/default/new/"))
    told = reader.get("/api/v1/podgroups/default/new/explain/").json()["reclaim"]

    words = "Another queue has more cpu than it deserves, but it is not reclaimable."
    assert words in page
    assert (told["message"], told["figures"]["others"]) == (words, [])
    assert "vision" not in page


def test_an_answer_is_kept_for_a_moment(monkeypatch: pytest.MonkeyPatch):
    gang = waits(reclaimable=False)
    asked = []
    monkeypatch.setattr(reclaim, "_ask", lambda gang: asked.append(gang.name))

    why_no_reclaim(gang)
    why_no_reclaim(gang)

    assert asked == ["new"]


def test_a_job_that_runs_has_no_answer_and_says_why_it_was_evicted():
    Queue.objects.filter(name="vision").update(min_run_seconds=0)
    submitted("new", "language", "lena", replicas=4)
    run_session(SessionRunner("test"))
    evicted = Eviction.objects.first()

    assert evicted is not None
    told = signed_in("root").get(f"/api/v1/podgroups/{evicted.podgroup_name}/explain/").json()

    assert (evicted.rule, evicted.grounds["taker"]["queue"]) == ("Deserved", "language")
    assert evicted.ran_seconds > 0
    assert evicted.core_seconds == pytest.approx(evicted.ran_seconds)
    assert told["reclaim"] is None
    assert told["lastEviction"]["rule"] == "Deserved"
    assert (
        "language goes from 0 to 4 cpu; it deserves 4. vision goes from 8 to 4 cpu; "
        "it deserves 4." in told["lastEviction"]["why"]
    )
