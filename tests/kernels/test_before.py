"""Forms that are kept to compare with: each names a form that replaces it, and stages of fusion are marked."""

import pytest

from prism_bench.spec.kernel import KernelSpec
from tests.built_in import CATALOGUE

FORMS = dict(CATALOGUE.kernels)
FORMS |= {
    f"{name}:{variant}": spec.with_variant(variant)
    for name, spec in CATALOGUE.kernels.items()
    for variant in spec.variants
}


def form_of(spec: KernelSpec, stage: str | None) -> str:
    return f"{spec.name}:{stage}" if stage else spec.name


@pytest.mark.parametrize("name", [name for name, spec in FORMS.items() if spec.before])
def test_what_replaces_a_form_is_there_and_is_replaced_by_nothing(name):
    assert FORMS[str(FORMS[name].before)].before is None
    assert FORMS[str(FORMS[name].before)].family == FORMS[name].family


@pytest.mark.parametrize("spec", [spec for spec in CATALOGUE.kernels.values() if spec.chains], ids=lambda one: one.name)
def test_the_stages_of_a_chain_before_the_full_one_are_marked(spec):
    for chain in spec.chains:
        last = form_of(spec, chain.stages["full"])
        for stage, variant in chain.stages.items():
            form = form_of(spec, variant)
            replaced = stage in ("baseline", "partial") and form != last
            assert (last if replaced else None) == FORMS[form].before, (chain.name, stage)


def test_a_variant_does_not_inherit_it():
    assert "vector_add_batch:full" == FORMS["vector_add_batch"].before
    assert FORMS["vector_add_batch:full"].before is None
    assert ["torch"] == list(FORMS["vector_add_batch:full"].peers)
