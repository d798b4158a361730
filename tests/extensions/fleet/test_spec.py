"""What `--fleet` names."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.extensions.fleet.cluster import FORMS, FleetSpec, parse, slurm_options


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ("local", FleetSpec("local")),
        ("tcp://10.0.0.1:8786", FleetSpec("address", address="tcp://10.0.0.1:8786")),
        ("tls://head.example:1", FleetSpec("address", address="tls://head.example:1")),
        ("slurm:8", FleetSpec("slurm", workers=8)),
        ("ssh:a,root@b,a", FleetSpec("ssh", hosts=("a", "root@b", "a"))),
    ],
)
def test_each_form(words, spec):
    assert spec == parse(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Local",
        "gpu",
        "tcp://host",
        "tcp://:1x",
        "http://a:1",
        "slurm",
        "slurm:0",
        "slurm:x",
        "ssh:",
        "ssh:a,,b",
        "ssh:a b",
    ],
)
def test_anything_else_is_refused_with_the_forms(words):
    with pytest.raises(UsageError, match="--fleet .*: it is ") as refused:
        parse(words)
    assert FORMS in str(refused.value)


def test_a_number_of_workers_is_for_fleets_that_start_them():
    assert FleetSpec("local", workers=3) == parse("local", 3)
    for words in ("tcp://a:1", "ssh:a", "slurm:2"):
        with pytest.raises(UsageError, match="--workers 3: only local starts so many"):
            parse(words, 3)


def test_a_job_of_slurm_asks_for_a_gpu_only_where_one_is_needed():
    assert ["--gres=gpu:1"] == slurm_options(needs_gpu=True)["job_extra_directives"]
    assert [] == slurm_options(needs_gpu=False)["job_extra_directives"]
