"""The table of jobs: what it holds, filters, kept views, one action for many."""

from __future__ import annotations

import shlex

import pytest

from scheduler.models import BulkRun, Job, PodGroup, Queue, SavedView
from scheduler.services.jobs.bulk import carry_out_bulk_runs
from tests.dashboard.sample import add_gang
from tests.dashboard.work import job_names, signed_in, small_cluster, submitted, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ("admin", ["label", "nightly", "train-1", "train-2"]),
        ("ruth", ["label", "train-1", "train-2"]),
        ("vera", ["train-1", "train-2"]),
    ],
)
def test_the_table_holds_what_may_be_seen(who: str, expected: list[str]):
    assert job_names(signed_in(who).get("/jobs/")) == expected


def test_a_job_out_of_sight_is_not_there():
    client = signed_in("vera")

    hidden = client.get("/jobs/default/nightly/")
    missing = client.get("/jobs/default/no-such/")

    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert text(hidden).count("nightly") == text(missing).count("no-such")


def test_a_filter_with_a_mistake_says_so_and_lists_nothing():
    answer = signed_in("admin").get("/jobs/", {"q": "user:sam stat:running"})

    assert job_names(answer) == []
    assert "There is no field “stat”: did you mean “state”?" in text(answer)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name:t*-1", ["train-1"]),
        ("name:*rai*", ["train-1", "train-2"]),
        ("name:*i*t*", ["nightly"]),
        ("name:?rain-*1", []),
        ("name:[t]rain-*1", []),
        ("name:tr%n-*1", []),
        ("name:t_ain-*1", []),
        ("user:S*m", []),
    ],
)
def test_a_star_stands_for_anything_and_nothing_else_does(query: str, expected: list[str]):
    assert job_names(signed_in("admin").get("/jobs/", {"q": query})) == expected


def test_many_stars_take_no_longer_than_few():
    submitted("a" * 60, "vision", "sam")

    assert job_names(signed_in("admin").get("/jobs/", {"q": f"name:{'*a' * 30}*b"})) == []


@pytest.mark.parametrize(
    "query",
    [
        "a " * 5000,
        " ".join(f"name:{'*,'.join('abcdefgh')}*" for _ in range(100)),
        "name:" + ",".join(f"*{number}*x" for number in range(100)),
        "age>99999999999w",
        "cpu>=1e30",
        "memory<1e99",
        "members>=999999999999",
        "queue:x/*,*y* " * 40,
        "state:live,finished,failed " * 40,
    ],
)
def test_a_filter_of_any_size_is_answered(query: str):
    assert signed_in("vera").get("/jobs/", {"q": query}).status_code == 200


def test_my_jobs_are_mine():
    assert job_names(signed_in("sam").get("/jobs/", {"q": "user:me"})) == ["train-1", "train-2"]


def test_columns_are_chosen_by_the_address():
    page = text(signed_in("admin").get("/jobs/", {"cols": "state,priority"}))

    assert "> Priority </th>" in page
    assert "> Asks for </th>" not in page


def test_a_view_is_kept_shared_used_and_deleted():
    sam = signed_in("sam")
    vera = signed_in("vera")
    answer = sam.post("/jobs/-/views/", {"name": "big ones", "q": "cpu>=8", "shared": "1"})
    assert answer["Location"] == "/jobs/?q=cpu%3E%3D8"

    offered = vera.get("/jobs/").context["views"]
    vera.post(f"/jobs/-/views/{offered[0]['id']}/forget/")

    assert [(view["name"], view["own"]) for view in offered] == [("big ones", False)]
    assert SavedView.objects.count() == 1  # somebody else's cannot be deleted
    sam.post(f"/jobs/-/views/{offered[0]['id']}/forget/")
    assert not SavedView.objects.exists()


def test_before_an_action_on_many_it_is_said_who_can_be_helped():
    answer = signed_in("ruth").get("/jobs/-/bulk/", {"action": "suspend", "all": "1", "q": ""})

    assert (answer.context["chosen"], answer.context["possible"]) == (3, 3)
    assert "3 chosen" in text(answer)


def test_an_action_on_many_is_written_down_and_has_a_page():
    client = signed_in("sam")
    answer = client.post(
        "/jobs/-/bulk/",
        {
            "action": "suspend",
            "job": ["default/train-1", "default/train-2", "default/label"],
            "reason": "later",
        },
    )

    run = BulkRun.objects.get()
    assert answer["Location"] == f"/jobs/-/bulk/{run.uid}/"
    assert sorted(run.items.values_list("name", flat=True)) == ["train-1", "train-2"]
    assert "Suspend: 0 of 2 done" in text(client.get(answer["Location"]))
    assert signed_in("vera").get(answer["Location"]).status_code == 404


def test_an_action_on_more_jobs_than_a_page_lists_is_for_all_of_them():
    """More than a form may have fields, and more than the question lists."""
    queue = Queue.objects.get(name="vision")
    names = [f"many-{number:04d}" for number in range(1100)]
    jobs = Job.objects.bulk_create(
        Job(namespace="default", name=name, queue=queue, min_available=1) for name in names
    )
    PodGroup.objects.bulk_create(
        PodGroup(namespace="default", name=job.name, queue=queue, job=job, phase="Pending")
        for job in jobs
    )
    client = signed_in("admin")
    ticked = " ".join(f"default/{name}" for name in names)

    asked = client.post("/jobs/-/bulk/", {"ask": "1", "action": "suspend", "jobs": ticked})
    unasked = BulkRun.objects.exists()
    client.post("/jobs/-/bulk/", {"action": "suspend", "jobs": asked.context["agreed"]})

    assert "Suspend 1100 of 1100 jobs?" in text(asked)
    assert not unasked
    assert BulkRun.objects.get().items.count() == 1100


def test_somebody_elses_jobs_can_not_be_chosen():
    answer = signed_in("vera").post(
        "/jobs/-/bulk/", {"action": "cancel", "job": ["default/train-1"]}
    )

    assert answer.status_code == 200
    assert answer.context["possible"] == 0
    assert not BulkRun.objects.exists()


def test_an_action_on_all_that_match_a_mistyped_filter_is_not_begun():
    answer = signed_in("admin").post(
        "/jobs/-/bulk/",
        {"action": "cancel", "all": "1", "q": "state:runing"},
        follow=True,
    )

    assert "Nothing was done, because the filter has a mistake." in text(answer)
    assert not BulkRun.objects.exists()


def test_an_action_on_all_that_match_is_for_those_that_were_asked_about():
    """Between the question and the answer one job comes to match, and one ends."""
    client = signed_in("admin")
    asked = client.get("/jobs/-/bulk/", {"action": "suspend", "all": "1", "q": ""})
    submitted("late", "vision", "sam")
    Job.objects.filter(name="label").update(phase="Completed")
    PodGroup.objects.filter(name="label").update(phase="Completed")

    shown = {"action": "suspend", "all": "1", "q": "", "agreed": asked.context["agreed"]}
    answer = client.post("/jobs/-/bulk/", shown, follow=True)

    assert asked.context["possible"] == 4
    assert sorted(BulkRun.objects.get().items.values_list("name", flat=True)) == [
        "nightly",
        "train-1",
        "train-2",
    ]
    assert "1 job has come to match since you were asked, and is left alone." in text(answer)


def test_an_action_on_all_that_match_is_not_begun_without_the_question():
    answer = signed_in("admin").post("/jobs/-/bulk/", {"action": "cancel", "all": "1", "q": ""})

    assert "Cancel 4 of 4 jobs?" in text(answer)
    assert not BulkRun.objects.exists()


def test_gangs_without_a_job_are_not_counted_among_those_that_an_action_is_for():
    add_gang("vision", "from-outside", phase="Running")

    page = signed_in("admin").get("/jobs/")

    assert (page.context["count"], page.context["matching"]) == ("5 jobs", "4 jobs")


def test_what_came_of_an_action_is_found_again_after_it_ended():
    client = signed_in("sam")
    client.post(
        "/jobs/-/bulk/", {"action": "suspend", "job": ["default/train-1", "default/train-2"]}
    )
    under_way = text(client.get("/jobs/"))
    Job.objects.filter(name="train-2").delete()
    carry_out_bulk_runs()

    done = text(client.get("/jobs/"))

    assert "Suspend 2 jobs: 0 done so far." in under_way
    assert "Suspend 2 jobs: done, 1 refused." in done
    assert "2 jobs: done" not in text(signed_in("ruth").get("/jobs/"))


def test_a_bulk_command_can_be_copied_for_a_terminal():
    admin = signed_in("admin")

    named = admin.get(
        "/jobs/-/bulk/", {"action": "cancel", "job": ["default/train-1", "default/label"]}
    ).context["copies"]
    matching = admin.get(
        "/jobs/-/bulk/", {"action": "suspend", "all": "1", "q": "queue:vision"}
    ).context["copies"]

    assert sorted(named["cli"].splitlines()) == [
        "vcctl job cancel default/label --yes",
        "vcctl job cancel default/train-1 --yes",
    ]
    assert '"jobs": ["default/' in named["curl"]
    assert '"action": "suspend", "query": "queue:vision"' in matching["curl"]
    for copied in (named, matching):
        words = shlex.split(copied["curl"])
        answer = admin.post(
            "/api/v1/bulkruns/?dry_run=true",
            words[words.index("-d") + 1],
            content_type="application/json",
        )
        assert answer.status_code in (200, 201), answer.content


def test_a_count_beside_the_list_adds_its_word_and_takes_it_away_again():
    client = signed_in("admin")

    offered = client.get("/jobs/", {"q": "user:sam"})
    chosen = client.get("/jobs/", {"q": "user:sam state:pending"})

    assert "?q=user%3Asam+state%3Apending" in text(offered)
    assert job_names(chosen) == ["train-2"]
    facets = {facet["key"]: facet["lines"] for facet in chosen.context["facets"]}
    assert facets["state"] == [
        {"title": "Pending", "count": "1", "chosen": True, "url": "/jobs/?q=user%3Asam"}
    ]


def test_an_open_page_does_not_count_many_jobs_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dashboard.views.jobs.COUNTED_AT_MOST", 3)
    client = signed_in("admin")

    first = client.get("/jobs/")
    refreshed = client.get("/jobs/", headers={"X-Refresh": "true"})
    few = client.get("/jobs/", {"q": "user:sam"}, headers={"X-Refresh": "true"})

    assert "job-facets" in text(first)
    assert "job-facets" not in text(refreshed)
    assert "job-facets" in text(few)


def test_groups_lead_to_the_filtered_list_and_hide_what_may_not_be_seen():
    page = signed_in("admin").get("/jobs/", {"group": "user", "q": "state:live"})
    seen = signed_in("vera").get("/jobs/", {"group": "queue"})

    assert {entry["title"] for entry in page.context["groups"]} == {"bert", "lena", "sam"}
    assert "/jobs/?q=state%3Alive+user%3Asam" in text(page)
    assert [entry["title"] for entry in seen.context["groups"]] == ["vision"]


def test_the_shape_of_a_group_is_found_again():
    client = signed_in("admin")
    groups = client.get("/jobs/", {"group": "shape"}).context["groups"]
    largest = next(entry for entry in groups if entry["title"].startswith("20 pods"))

    assert job_names(client.get(largest["url"])) == ["train-2"]
    assert "“x” is no shape of a gang" in text(client.get("/jobs/", {"q": "shape:x"}))
