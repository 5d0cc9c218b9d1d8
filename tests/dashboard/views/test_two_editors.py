"""Two people edit the same queue."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
import yaml
from django.test import Client

from scheduler.domain.lifecycle import QueueCommand
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.sample import GPU
from tests.dashboard.views.editing import EDIT, stored, typed
from tests.dashboard.work import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("tree")]


class TestTwoEditors:
    """Both opened the form; ruth saved first."""

    def opened(self, client: Client, **changes: str) -> dict[str, Any]:
        context = client.get(EDIT).context
        return {
            **typed(client, **changes),
            "version": str(context["version"]),
            "opened": context["opened"],
        }

    def theirs(self, **spec: Any) -> None:
        update_queue("vision", {"spec": spec}, merge=True, by=Actor("ruth", Door.UI))

    def test_only_what_i_changed_is_written_and_what_they_changed_is_kept_and_told(
        self, admin: Client
    ):
        mine = self.opened(admin, weight="5")
        self.theirs(priority=3, deserved={"cpu": "280"})

        answer = admin.post(EDIT, mine, follow=True)

        assert (stored().weight, stored().priority, stored().deserved["cpu"]) == (5, 3, 280_000)
        assert "Saved vision. Changed weight from 1 to 5." in text(answer)
        assert (
            "Changed by others meanwhile, and kept: Priority from 0 to 3, Deserved CPU "
            "from 300 to 280."
        ) in text(answer)

    def test_a_command_meanwhile_is_no_conflict_and_is_not_undone(self, admin: Client):
        mine = self.opened(admin, weight="5")
        command_queue("vision", QueueCommand.SUSPEND)

        admin.post(EDIT, mine)

        assert (stored().weight, stored().state) == (5, "Suspended")

    def test_a_field_that_both_changed_is_asked_about_with_all_three_values(self, admin: Client):
        mine = self.opened(admin, weight="5")
        self.theirs(weight=7, priority=3)

        asked = admin.post(EDIT, mine)

        assert asked.status_code == 412
        (line,) = asked.context["both"]
        assert line == {"field": "Weight", "base": "1", "mine": "5", "theirs": "7"}
        assert "They also changed this, and it is kept: Priority from 0 to 3." in text(asked)
        assert (asked.context["form"].weight, asked.context["form"].priority) == ("5", "3")
        assert "No rule is broken." in text(asked)
        assert (stored().weight, stored().priority) == (7, 3)

        again = {
            **mine,
            "priority": "3",
            "version": str(asked.context["version"]),
            "opened": asked.context["opened"],
        }
        admin.post(EDIT, again)
        assert (stored().weight, stored().priority) == (5, 3)

    def test_as_yaml_it_is_the_same(self, admin: Client):
        mine = self.opened(admin)
        manifest = yaml.safe_load(admin.get(f"{EDIT}?as=yaml").context["yaml"])
        manifest["spec"]["weight"] = 5
        self.theirs(priority=3)

        admin.post(
            EDIT,
            {
                "as": "yaml",
                "yaml": yaml.safe_dump(manifest),
                "version": mine["version"],
                "opened": mine["opened"],
            },
        )

        assert (stored().weight, stored().priority) == (5, 3)

    def test_turning_to_yaml_does_not_forget_what_i_began_with(self, admin: Client):
        mine = self.opened(admin, weight="5")
        self.theirs(priority=3)

        turned = admin.post(EDIT, {**mine, "show": "yaml"}).context
        admin.post(
            EDIT,
            {
                "as": "yaml",
                "yaml": turned["yaml"],
                "version": str(turned["version"]),
                "opened": turned["opened"],
            },
        )

        assert (stored().weight, stored().priority) == (5, 3)

    def test_the_check_speaks_of_what_would_be_written(self, admin: Client):
        mine = self.opened(admin, **{f"deserved:{GPU}": "18"})
        self.theirs(capability={GPU: "17"}, deserved={GPU: "10"})

        said = unescape(text(admin.post("/queues/-/check/", {**mine, "editing": "vision"})))

        assert "is more than its capability 17" in said

    def test_what_they_and_i_changed_must_be_allowed_together(self, admin: Client):
        mine = self.opened(admin, **{f"guarantee:{GPU}": "16"})
        self.theirs(deserved={GPU: "10"})

        answer = admin.post(EDIT, mine)

        assert answer.status_code == 400
        assert stored().guarantee.amount(GPU) == 0

    @pytest.mark.parametrize(
        "opened",
        [
            "",
            "{",
            "[]",
            '{"spec": 5}',
            "[" * 5000,
            '{"metadata": {"name": "vision"}, "spec": {"weight": "x"}}',
        ],
    )
    def test_without_what_i_began_with_nothing_of_theirs_is_overwritten(
        self,
        admin: Client,
        opened: str,
    ):
        mine = self.opened(admin, weight="5") | {"opened": opened}
        self.theirs(priority=3)

        answer = admin.post(EDIT, mine)

        assert answer.status_code == 412
        assert (stored().weight, stored().priority) == (1, 3)
