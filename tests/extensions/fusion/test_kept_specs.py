"""The specs that are built in memory are those that were generated as text: kept from before, they are compared."""

import json

import pytest

from tests.built_in import CATALOGUE
from tests.extensions.fusion.kept_specs import KEPT, specs

SPECS = specs(CATALOGUE)
BEFORE = json.loads(KEPT.read_text())


def test_kernels_and_variants_are_those_of_before():
    assert list(BEFORE) == list(SPECS)


@pytest.mark.parametrize("name", BEFORE)
def test_a_spec_says_what_it_said(name):
    assert BEFORE[name] == SPECS[name]
