"""What a machine allows, from the checks that passed."""

import pytest

from prism_bench.doctor.checks import ABILITIES, Ability, answers, broken, missing, note, works

EMULATE = Ability("emulate", ("compiler",))


@pytest.mark.parametrize("check", [works("compiler", "g++"), note("compiler", "g++", "old", "take a newer one")])
def test_an_ability_needs_checks_that_pass_or_have_a_note(check):
    (found,) = answers([check], [EMULATE])
    assert (True, None) == (found.possible, found.lacks)


CURE = "install g++"


@pytest.mark.parametrize("check", [missing("compiler", "none", CURE), broken("compiler", "x", "y", CURE)])
def test_what_is_missing_or_broken_is_named_with_its_cure(check):
    (found,) = answers([check], [EMULATE])
    assert (False, "compiler", "install g++") == (found.possible, found.lacks, found.cure)


def test_a_check_that_was_not_made_proves_nothing():
    assert not answers([], [EMULATE])[0].possible


def test_the_first_check_that_fails_is_the_reason():
    wanted = Ability("profile", ("CUDA backend", "ncu"))
    (found,) = answers([missing("ncu", "a", "b"), missing("CUDA backend", "c", "d")], [wanted])
    assert "CUDA backend" == found.lacks


def test_every_need_is_a_check_of_the_doctor():
    """Checks that exist only where a GPU is are named by the backend's own."""
    from prism_bench.doctor import examine

    made = {check.name for _, check in examine()}
    assert {name for one in ABILITIES for name in one.needs} <= made | {"NVML"}
