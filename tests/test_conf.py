"""Settings of a real cluster and of single sign-on: bad values are one clear sentence."""

from __future__ import annotations

import pytest

from scheduler.conf import BadSetting, kubernetes_conf, sign_on_conf


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


SIGN_ON = {
    "SSO_ISSUER": "https://sso.example.com",
    "SSO_CLIENT_ID": "fumarole",
    "SSO_CLIENT_SECRET": "secret",
}


def test_sign_on_is_off_unless_an_issuer_is_named():
    assert not sign_on_conf({}).is_on
    assert not sign_on_conf({**SIGN_ON, "SSO_ISSUER": ""}).is_on
    assert sign_on_conf(SIGN_ON).is_on


def test_a_secret_is_not_in_what_a_log_would_show():
    assert "secret'" not in repr(sign_on_conf(SIGN_ON))


@pytest.mark.parametrize("issuer", ["http://localhost:5556/dex", "http://127.0.0.1:5556"])
def test_plain_http_is_taken_on_this_machine(issuer: str):
    assert sign_on_conf({**SIGN_ON, "SSO_ISSUER": issuer}).issuer == issuer


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"SSO_ISSUER": "http://sso.example.com"}, "SSO_ISSUER is “http://sso.example.com”"),
        ({"SSO_ISSUER": "sso.example.com"}, "SSO_ISSUER is “sso.example.com”"),
        ({"SSO_CLIENT_ID": ""}, "SSO_CLIENT_ID is not"),
        ({"SSO_CLIENT_SECRET": ""}, "SSO_CLIENT_SECRET is not"),
        ({"SSO_SCOPES": "profile"}, "SSO_SCOPES lacks openid"),
        ({"SSO_CREATE_USERS": "some"}, "Set it to one of mapped, all, never"),
        ({"SSO_SESSION_HOURS": "0"}, "SSO_SESSION_HOURS is “0”"),
        ({"SSO_RIGHTS_HOURS": "x"}, "SSO_RIGHTS_HOURS is “x”"),
    ],
)
def test_bad_settings_of_sign_on(given: dict[str, str], words: str):
    with pytest.raises(BadSetting, match=words):
        sign_on_conf({**SIGN_ON, **given})


def test_accounts_of_controllers_are_named_but_never_all():
    usual = kubernetes_conf({}).controller_accounts
    own = kubernetes_conf({"KUBERNETES_CONTROLLER_ACCOUNTS": " system:serviceaccount:argo:* ,x,"})

    assert "system:kube-controller-manager" in usual
    assert own.controller_accounts == ("system:serviceaccount:argo:*", "x")
    with pytest.raises(BadSetting, match="everybody could name others"):
        kubernetes_conf({"KUBERNETES_CONTROLLER_ACCOUNTS": "x,*"})
