"""A task by its name: a kernel, or one of its variants."""

from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import UsageError
from prism_bench.extensions.judge.judging import judge
from prism_bench.extensions.judge.task import task_named

CATALOGUE = discover()
CARD = """
source = "doubles.cu"
[[launch]]
entry = "doubles"
grid = "ceil_div(n, 256)"
block = 256
arguments = ["a", "b", "n"]
when = "n > 0"
"""
SOURCE = """
__global__ void doubles(float* a, const float* b, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) a[i] += b[i];
}
"""


def test_a_variant_is_a_task_by_itself() -> None:
    kernel, variant = (task_named(name, CATALOGUE) for name in ("vector_add", "vector_add:in_place"))
    assert ("vector_add", "vector_add:in_place") == (kernel.spec.name, variant.spec.name)
    assert kernel.hash != variant.hash
    assert [one.name for one in kernel.spec.outputs] != [one.name for one in variant.spec.outputs]


def test_a_submission_is_judged_by_the_arguments_of_the_variant(tmp_path: Path) -> None:
    (tmp_path / "doubles.cu").write_text(SOURCE)
    (tmp_path / "doubles.toml").write_text(CARD)
    verdict = judge(tmp_path, "vector_add:in_place", catalogue=CATALOGUE, trust_source=True)
    assert ("right", "vector_add:in_place") == (verdict.ruling, verdict.task), verdict.objections
    assert "wrong" == judge(tmp_path, "vector_add", catalogue=CATALOGUE, trust_source=True).ruling


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vector_add:in_palce", "unknown variant of vector_add 'in_palce'; did you mean in_place"),
        ("vector_ad:in_place", "unknown kernel 'vector_ad'; did you mean vector_add"),
    ],
)
def test_a_name_that_is_none_is_refused_with_the_nearest(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        task_named(name, CATALOGUE)
