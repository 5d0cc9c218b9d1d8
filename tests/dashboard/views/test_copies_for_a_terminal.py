"""What is typed or asked on a page, as commands for a terminal."""

from __future__ import annotations

import shlex

import yaml
from django.test import Client


class TestCopies:
    def test_what_is_typed_is_a_file_to_apply_and_a_request(self, admin: Client):
        answer = admin.post(
            "/queues/-/check/",
            {"name": "it's", "parent": "research", "weight": "2", "deserved:cpu": "4"},
        )

        copies = answer.context["copies"]
        assert copies["kubectl"] == ""  # this cluster is simulated
        for copied in (copies["cli"], copies["curl"]):
            document = copied.split("<<'END'\n", 1)[1].removesuffix("END")
            assert yaml.safe_load(document)["metadata"]["name"] == "it's"
        assert copies["cli"].startswith("vcctl apply -f - <<'END'")
        assert "curl -X POST" in copies["curl"]

    def test_a_change_is_put_to_the_queue_itself(self, admin: Client):
        answer = admin.get("/queues/vision/edit/")

        assert "curl -X PUT" in answer.context["copies"]["curl"]
        assert "/api/v1/queues/vision/ <<'END'" in answer.context["copies"]["curl"]

    def test_deleting_and_several_at_once_have_theirs(self, admin: Client):
        deleting = admin.get("/queues/vision/delete/?cascade=on").context["copies"]
        closing = admin.get("/queues/vision/farewell/").context["copies"]
        several = admin.get(
            "/queues/-/commands/?command=suspend&queue=vision&queue=language"
        ).context["copies"]

        assert deleting["cli"] == "vcctl queue delete vision --cascade"
        assert shlex.split(deleting["curl"])[:3] == ["curl", "-X", "DELETE"]
        assert closing["cli"] == "vcctl queue delete vision --close-first"
        assert shlex.split(closing["curl"])[-1].endswith("/api/v1/queues/vision/?close_first=true")
        assert several["cli"].splitlines() == [
            "vcctl queue suspend language",
            "vcctl queue suspend vision",
        ]
