"""Settings of a real cluster: bad values are one clear sentence."""

from __future__ import annotations

import pytest

from scheduler.conf import BadSetting, kubernetes_conf


def test_without_settings_the_cluster_is_watched():
    found = kubernetes_conf({})

    assert found.mode == "watch"
    assert found.scheduler_names == ("fumarole", "volcano")


def test_whoever_schedules_takes_only_its_own_pods_unless_told_otherwise():
    alone = kubernetes_conf({"KUBERNETES_MODE": "schedule"})
    beside = kubernetes_conf(
        {"KUBERNETES_MODE": "schedule", "KUBERNETES_SCHEDULER_NAMES": "fumarole,volcano"}
    )

    assert (alone.mode, alone.scheduler_names) == ("schedule", ("fumarole",))
    assert beside.scheduler_names == ("fumarole", "volcano")


def test_names_of_schedulers_are_given_with_commas():
    found = kubernetes_conf({"KUBERNETES_SCHEDULER_NAMES": "mine, volcano ,"})

    assert found.scheduler_names == ("mine", "volcano")


def test_a_kubeconfig_of_several_files_needs_one_that_exists(tmp_path):
    file = tmp_path / "config"
    file.write_text("{}")

    found = kubernetes_conf({"KUBECONFIG": f"/no/such/file:{file}"})

    assert found.kubeconfig.endswith(str(file))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"KUBERNETES_MODE": "wach"},
            "KUBERNETES_MODE is “wach”. Set it to one of watch, schedule",
        ),
        ({"KUBERNETES_EVICTION": "kill"}, "KUBERNETES_EVICTION is “kill”"),
        ({"KUBECONFIG": "/no/such/file"}, "KUBECONFIG names /no/such/file, which is not a file"),
        ({"KUBERNETES_JOB_CONTROLLER": "both"}, "KUBERNETES_JOB_CONTROLLER is “both”"),
        ({"KUBERNETES_SCHEDULER_NAMES": " , "}, "names no scheduler"),
        (
            {"KUBERNETES_QUEUE_CONTROLLER": "me"},
            "QUEUE_CONTROLLER is “me”. Set it to one of auto, volcano, fumarole",
        ),
    ],
)
def test_what_cannot_be_used_is_told_at_once(given, words):
    with pytest.raises(BadSetting, match=words):
        kubernetes_conf(given)
