"""`vcctl pod logs`, where pods are simulated: the answer is a remark, and no failure."""

from __future__ import annotations

import pytest

from tests.worlds import job

pytestmark = pytest.mark.django_db


def test_a_simulated_pod_has_no_log(vcctl):
    job("train")

    done = vcctl("vcctl pod logs default/train-worker-0 --lines 5 --previous")

    assert done.code == 0
    assert done.out == ""
    assert done.err == "Pods of a simulated cluster write no logs.\n"


def test_a_pod_that_is_not_there_is_told(vcctl):
    done = vcctl("vcctl pod logs nobody")

    assert done.code != 0
    assert "nobody" in done.err
