"""What may vary: the space, its rules, its words; and what cannot be a space."""

import pytest

from prism_bench import Rule, Tune
from prism_bench.errors import SpecError, UsageError
from prism_bench.spec.workload import written

TUNE = Tune(
    block=(256, 64, 128),
    form=("wide", "narrow"),
    rules=(Rule("narrow blocks are small", lambda form, block: form == "wide" or block < 200),),
)


def test_the_first_value_is_the_default():
    assert {"block": 256, "form": "wide"} == TUNE.defaults({}, "k")


def test_a_default_may_follow_from_the_workload():
    tune = Tune(block=(32, 64), default={"block": lambda cols: 64 if cols > 32 else 32})
    assert [{"block": 32}, {"block": 64}] == [tune.defaults({"cols": cols}, "k") for cols in (1, 33)]


def test_its_product_has_every_combination_of_the_names_asked_for():
    assert [{"form": "wide"}, {"form": "narrow"}] == list(TUNE.product(("form",)))
    assert 6 == len(list(TUNE.product(("block", "form"))))


def test_the_first_broken_rule_is_told():
    assert None is TUNE.broken({"form": "narrow", "block": 64}, "k")
    assert "narrow blocks are small" == TUNE.broken({"form": "narrow", "block": 256}, "k").text


def test_a_configuration_is_written_and_read_again():
    configuration = {"block": 128, "form": "narrow"}
    assert "block=128,form=narrow" == written(configuration)
    assert configuration == TUNE.parsed("block=128,form=narrow", "k")


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("blocks=128", "k: 'blocks=128' sets none of: block, form"),
        ("block=100", "k: block is '100'; it is one of 256, 64, 128"),
        ("block", "k: block is ''; it is one of 256, 64, 128"),
    ],
)
def test_words_that_write_no_configuration_say_what_could_have_stood_there(text, complaint):
    with pytest.raises(UsageError, match=complaint):
        TUNE.parsed(text, "k")


@pytest.mark.parametrize(
    "space, complaint",
    [
        ({}, "names nothing that may vary"),
        ({"block": ()}, "'block' has no value to take"),
        ({"block": (64, 128, 64)}, "'block' names a value twice: 64, 128, 64"),
        ({"block": (64,), "default": {"blocks": len}}, "a default for 'blocks', which is none of: block"),
    ],
)
def test_what_is_no_space_is_refused(space, complaint):
    with pytest.raises(SpecError, match=complaint):
        Tune(**space)
