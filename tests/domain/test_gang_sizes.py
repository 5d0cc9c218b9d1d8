from __future__ import annotations

import pytest

from scheduler.domain.gang_sizes import SIZE_WORDS, size_of
from scheduler.domain.resources import Resources


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ({"cpu": "4", "nvidia.com/gpu": "1"}, "1 GPU"),
        ({"cpu": "400", "nvidia.com/gpu": "2"}, "2 to 4 GPUs"),
        ({"amd.com/gpu": "4", "nvidia.com/gpu": "4"}, "5 to 8 GPUs"),
        ({"nvidia.com/gpu": "32"}, "9 to 32 GPUs"),
        ({"nvidia.com/gpu": "33"}, "more than 32 GPUs"),
        ({"cpu": "500m", "memory": "900Gi"}, "up to 1 CPU"),
        ({"cpu": "8"}, "up to 8 CPUs"),
        ({"cpu": "65", "nvidia.com/gpu": "0"}, "more than 64 CPUs"),
        ({"memory": "1Gi"}, "size not known"),
    ],
)
def test_a_gang_is_as_large_as_its_gpus_or_else_its_cpus(amounts, words):
    assert SIZE_WORDS[size_of(Resources.parse(amounts).items())] == words
