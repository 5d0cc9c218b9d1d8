"""Safe windows: each step, its undo, and what others do meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden
from scheduler.domain.change_sets import Crossed, SetState
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.models import AuditEntry, ChangeSet, Grant, Queue, SafeWindow
from scheduler.selectors.change_sets.windows import standing_of
from scheduler.services.change_sets import drafts, windows
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.preview_runs import start_preview, work_out_previews
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.work import person, small_cluster
from tests.services.change_sets.builders import edit, exported
from tests.services.queues.builders import queue, states

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def begun(name: str = "research", by: str = "admin", reason: str = "") -> SafeWindow:
    return windows.begin_window(name, by=replace(person(by), reason=reason)).window


def changed(window: SafeWindow, *documents: object) -> SafeWindow:
    drafts.add_documents(window.change_set_id, documents, by=person(window.author))
    return fresh(window)


def fresh(window: SafeWindow) -> SafeWindow:
    return SafeWindow.objects.select_related("change_set").get(pk=window.pk)


def requested(name: str) -> str:
    return Queue.objects.get(name=name).wish


def weight(name: str) -> int:
    return Queue.objects.get(name=name).weight


def codes(window: SafeWindow) -> list[str]:
    return [incident.code for incident in standing_of(fresh(window)).incidents]


def test_the_whole_way_ends_with_the_change_alone():
    before = exported()

    window = begun()
    assert states("research", "vision") == {"research": "Suspended", "vision": "Suspended"}
    changed(window, edit("vision", weight=7))
    windows.apply_window(window.pk, by=person("admin"))
    assert states("vision") == {"vision": "Suspended"}
    windows.resume_window(window.pk, by=person("admin"))

    assert fresh(window).state == "Finished"
    assert states("research", "vision") == {"research": "Open", "vision": "Open"}
    assert weight("vision") == 7
    update_queue("vision", {"spec": {"weight": 1}}, merge=True)
    assert exported() == before


def test_each_step_leads_to_the_next():
    window = begun()
    assert standing_of(fresh(window)).step == "edit"

    changed(window, edit("vision", weight=7))
    assert standing_of(fresh(window)).step == "preview"
    start_preview(by=person("admin"), change_set=fresh(window).change_set, minutes=5)
    work_out_previews()
    assert standing_of(fresh(window)).step == "apply"
    windows.apply_window(window.pk, by=person("admin"))
    assert standing_of(fresh(window)).step == "resume"
    windows.resume_window(window.pk, by=person("admin"))

    assert standing_of(fresh(window)).step == "nothing"


def test_queues_that_others_suspended_before_stay_suspended():
    command_queue("vision", QueueCommand.SUSPEND)
    window = begun()

    windows.resume_window(window.pk, by=person("admin"))

    assert states("research", "vision", "language") == {
        "research": "Open",
        "vision": "Suspended",
        "language": "Open",
    }


def test_a_queue_that_was_suspended_before_is_held_and_stays_so():
    command_queue("research", QueueCommand.SUSPEND)
    window = begun()

    deed = windows.resume_window(window.pk, by=person("admin"))

    assert "stays so" in deed.message
    assert states("research") == {"research": "Suspended"}


def test_a_queue_that_drained_drains_again():
    command_queue("vision", QueueCommand.CLOSE)
    assert states("vision") == {"vision": "Closing"}
    deed = windows.begin_window("vision", by=person("admin"))
    assert deed.outcome is not None
    assert [warning["code"] for warning in deed.outcome.warnings]

    windows.resume_window(deed.window.pk, by=person("admin"))

    assert states("vision") == {"vision": "Closing"}


def test_before_anything_is_applied_resume_is_the_undo_of_suspend():
    before = exported()
    window = changed(begun(), edit("vision", weight=7))

    windows.resume_window(window.pk, by=person("admin"))

    assert fresh(window).state == "Abandoned"
    assert fresh(window).change_set.is_draft
    assert exported() == before


def test_revert_undoes_the_apply_and_keeps_the_edits():
    window = changed(begun(), edit("research", weight=7), edit("vision", weight=8))
    suspended = exported()
    windows.apply_window(window.pk, by=person("admin"))

    windows.revert_window(window.pk, by=person("admin"))

    assert exported() == suspended
    draft = fresh(window).change_set
    assert draft.is_draft
    assert [item.name for item in draft.changes] == ["research", "vision"]
    windows.apply_window(window.pk, by=person("admin"))
    assert weight("research") == 7


def test_abandoning_leads_all_the_way_back():
    before = exported()
    window = changed(begun(), edit("research", weight=7))
    windows.apply_window(window.pk, by=person("admin"))

    deed = windows.abandon_window(window.pk, by=person("admin"))

    assert exported() == before
    assert fresh(window).state == "Abandoned"
    assert "Reverted" in deed.message


def test_abandoning_before_the_apply_discards_the_draft():
    before = exported()
    window = changed(begun(), edit("research", weight=7))

    windows.abandon_window(window.pk, by=person("admin"))

    assert exported() == before
    assert fresh(window).change_set.state == SetState.DISCARDED


def test_resume_is_undone_by_suspending_again():
    window = changed(begun(), edit("vision", weight=7))
    windows.apply_window(window.pk, by=person("admin"))
    windows.resume_window(window.pk, by=person("admin"))

    windows.suspend_again(window.pk, by=person("admin"))

    assert fresh(window).is_open
    assert states("vision") == {"vision": "Suspended"}
    windows.abandon_window(window.pk, by=person("admin"))
    assert weight("vision") == 1
    with pytest.raises(NotPossible, match="begin a new one"):
        windows.suspend_again(window.pk, by=person("admin"))


def test_a_finished_window_is_reverted_without_a_conflict_about_its_own_suspension():
    before = exported()
    window = changed(begun(), edit("research", weight=7))
    windows.apply_window(window.pk, by=person("admin"))
    windows.resume_window(window.pk, by=person("admin"))

    back = drafts.revert(window.change_set_id, by=person("admin"))
    apply_change_set(back.pk, by=person("admin"))

    assert exported() == before


@pytest.mark.parametrize("other", ["root", "research", "vision"])
def test_two_windows_do_not_overlap(other: str):
    begun("research", by="ruth")

    with pytest.raises(Rejected, match="of ruth holds research") as refusal:
        windows.begin_window(other, by=person("admin"))

    assert refusal.value.by_state
    assert SafeWindow.objects.count() == 1


def test_a_window_beside_another_is_fine():
    begun("vision")

    assert begun("language").is_open


def test_a_window_above_that_one_may_not_see_is_not_named():
    begun("research")
    person("ruth").user.grants.all().delete()
    grant_on("vision", "ruth")

    with pytest.raises(Rejected, match="A queue above vision") as refusal:
        windows.begin_window("vision", by=person("ruth"))

    assert "research" not in str(refusal.value)


def grant_on(name: str, user: str) -> None:
    place = Queue.objects.get(name=name)
    Grant.objects.create(user=person(user).user, role="admin", queue=place)


def test_whoever_may_not_suspend_and_change_the_queue_begins_nothing():
    before = exported()

    with pytest.raises(Forbidden):
        windows.begin_window("vision", by=person("sam"))

    assert exported() == before
    assert not ChangeSet.objects.exists()


def test_a_colleague_with_the_same_rights_ends_it():
    window = changed(begun("research", by="admin"), edit("vision", weight=7))

    windows.abandon_window(window.pk, by=person("ruth"))

    assert requested("research") == "Open"
    assert fresh(window).change_set.is_draft  # of somebody else: it is theirs to discard


def test_a_closed_queue_needs_no_window():
    queue("spare", state="Closed")

    with pytest.raises(NotAllowed, match="needs no safe window"):
        windows.begin_window("spare", by=person("admin"))

    assert not SafeWindow.objects.exists()
    with pytest.raises(NotAllowed, match="root cannot be suspended"):
        windows.begin_window("root", by=person("admin"))


def test_when_somebody_resumes_in_the_middle_nothing_is_applied_here():
    window = changed(begun(), edit("vision", weight=7))
    command_queue("research", QueueCommand.RESUME, by=person("ruth"))

    assert codes(window) == ["not_suspended"]
    last = standing_of(fresh(window)).last_command
    assert last is not None
    assert last.actor == "ruth"
    with pytest.raises(NotPossible, match="no longer suspended"):
        windows.apply_window(window.pk, by=person("admin"))
    assert weight("vision") == 1
    windows.suspend_again(window.pk, by=person("admin"))
    windows.apply_window(window.pk, by=person("admin"))
    assert codes(window) == []


def test_what_others_asked_for_is_left_as_it_is():
    window = begun()
    command_queue("research", QueueCommand.CLOSE)

    deed = windows.resume_window(window.pk, by=person("admin"))

    assert "left as it is" in deed.message
    assert requested("research") == "Closed"


def test_a_queue_that_was_deleted_leaves_a_window_that_can_be_ended():
    queue("spare")
    window = begun("spare")
    row = Queue.objects.get(name="spare")
    row.delete()

    assert codes(window) == ["queue_gone"]
    with pytest.raises(NotPossible, match="is gone"):
        windows.suspend_again(window.pk, by=person("admin"))
    deed = windows.resume_window(window.pk, by=person("admin"))

    assert "is gone" in deed.message
    assert not fresh(window).is_open


def test_one_that_was_made_again_is_another_queue():
    queue("spare")
    window = begun("spare")
    Queue.objects.get(name="spare").delete()
    queue("spare", state="Suspended")

    assert codes(window) == ["queue_gone"]
    windows.resume_window(window.pk, by=person("admin"))

    assert requested("spare") == "Suspended"


def test_a_crossing_set_is_told_and_nothing_is_undone():
    window = changed(begun(), edit("vision", weight=7))
    windows.apply_window(window.pk, by=person("admin"))
    update_queue("vision", {"spec": {"weight": 9}}, merge=True)

    (crossing,) = standing_of(fresh(window)).crossings
    assert "spec.weight from 7 to 9" in crossing.message
    with pytest.raises(Crossed):
        windows.abandon_window(window.pk, by=person("admin"))

    assert weight("vision") == 9
    assert requested("research") == "Suspended"
    assert fresh(window).is_open


def test_a_set_that_was_applied_or_reverted_on_its_own_page_is_known():
    window = changed(begun(), edit("vision", weight=7))
    apply_change_set(window.change_set_id, by=person("admin"))
    assert standing_of(fresh(window)).step == "resume"
    back = drafts.revert(window.change_set_id, by=person("admin"))
    apply_change_set(back.pk, by=person("admin"))

    assert standing_of(fresh(window)).is_reverted
    windows.resume_window(window.pk, by=person("admin"))

    assert fresh(window).state == "Abandoned"


def test_a_discarded_set_is_replaced_by_a_new_one():
    window = changed(begun(), edit("vision", weight=7))
    with pytest.raises(NotPossible, match="not discarded"):
        windows.new_draft(window.pk, by=person("admin"))
    drafts.discard(window.change_set_id, by=person("admin"))
    assert standing_of(fresh(window)).step == "edit"

    windows.new_draft(window.pk, by=person("admin"))

    assert fresh(window).change_set.is_draft
    assert fresh(window).change_set.changes == ()


def test_a_dry_run_of_any_step_changes_nothing():
    windows.begin_window("research", by=person("admin"), dry_run=True)
    assert not SafeWindow.objects.exists()
    assert requested("research") == "Open"
    window = changed(begun(), edit("research", weight=7))
    before = exported()
    windows.apply_window(window.pk, by=person("admin"), dry_run=True)
    windows.resume_window(window.pk, by=person("admin"), dry_run=True)
    windows.abandon_window(window.pk, by=person("admin"), dry_run=True)
    assert exported() == before
    windows.apply_window(window.pk, by=person("admin"))
    applied = exported()

    windows.revert_window(window.pk, by=person("admin"), dry_run=True)
    windows.abandon_window(window.pk, by=person("admin"), dry_run=True)

    assert exported() == applied
    assert fresh(window).is_open
    assert fresh(window).change_set.state == SetState.APPLIED


def test_the_audit_log_has_begin_and_end():
    window = begun(reason="quarterly quotas")
    windows.resume_window(window.pk, by=person("admin"))

    kept = AuditEntry.objects.filter(kind="SafeWindow").order_by("pk")
    assert [entry.action for entry in kept] == ["BeginWindow", "EndWindow"]
    assert kept[0].reason == "quarterly quotas"
    assert AuditEntry.objects.filter(action="SuspendQueue", reason="quarterly quotas").exists()


def test_a_preview_shows_both_sides_resumed():
    window = changed(begun(), edit("vision", weight=7))

    preview = start_preview(by=person("admin"), change_set=window.change_set, minutes=5)
    work_out_previews()

    preview.refresh_from_db()
    assert preview.state == "Done"
    assert preview.result is not None
    assert preview.result["resumed"] == "research"
    assert requested("research") == "Suspended"
