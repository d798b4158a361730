"""Which launches belong to which case: by ranges, else by order, else refused."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.profilers.metrics import ProfiledLaunch
from prism_bench.workflows.profile_worker import attributed, cut_short, launched, progress, read_events


def launch(number, name=None):
    cell = f' "0:<default domain>:{name}:none:none" '
    return ProfiledLaunch(number, "kernel", {}, ranges=(cell,) if name else ())


def ids(groups):
    return {name: ([one.id for one in own], [one.id for one in after]) for name, (own, after) in groups.items()}


def attributed_to(launches, ends, **more):
    return attributed(launches, {one["end"]: one for one in ends}, **more)


def end(name, launches, following=0):
    return {"end": name, "launches": launches, "following": following}


def test_ranges_tell_whatever_the_plans_say():
    launches = [launch(0, "a[n=1]"), launch(1, "a:fast[n=1]"), launch(2, "a[n=1]")]
    found = attributed_to(launches, [end("a[n=1]", 1), end("a:fast[n=1]", 1)])
    assert {"a[n=1]": ([0, 2], []), "a:fast[n=1]": ([1], [])} == ids(found)


def test_what_followed_a_case_is_told_apart():
    found = attributed_to([launch(0, "a[n=1]"), launch(1, "after a[n=1]")], [end("a[n=1]", 1, 1)])
    assert {"a[n=1]": ([0], [1])} == ids(found)


def test_without_ranges_the_order_tells():
    found = attributed_to([launch(i) for i in (3, 1, 2, 0)], [end("a", 1, 1), end("b", 0), end("c", 2)])
    assert {"a": ([0], [1]), "b": ([], []), "c": ([2, 3], [])} == ids(found)


def test_launches_that_no_plan_explains_are_refused():
    with pytest.raises(ResultsError, match="2 launches without ranges; the cases have 1"):
        attributed_to([launch(0), launch(1)], [end("a", 1)])


def test_a_case_that_ended_the_program_leaves_launches_that_belong_to_nobody():
    found = attributed_to([launch(0, "a"), launch(1, "b")], [end("a", 1)], cut=True)
    assert {"a": ([0], [])} == ids(found)


def test_a_program_that_launched_nothing_by_its_own_fault_is_told_apart():
    assert launched([])
    assert launched([{"begin": "a"}, end("a", 1)])
    assert not launched([{"begin": "a"}, end("a", 0)])


def test_a_line_that_is_being_written_is_not_read_yet(tmp_path):
    path = tmp_path / "events"
    assert (0, "starting") == progress(path)
    path.write_text('{"begin": "a"}\n{"end": "a", "launches": 1}\n{"begin": "b"}\n{"end": "b", "lau')
    assert 3 == len(read_events(path))
    assert (1, "b") == progress(path)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([{"begin": "b"}], ("crashed", "b: ended the program that profiled it, during making its inputs")),
        ([{"begin": "b"}, {"at": "x"}, {"at": "y"}], ("crashed", "b: ended the program that profiled it, during y")),
        ([{"begin": "b"}, {"at": "x"}, {"late": "b"}],
         ("timed out", "b: the limit for one case, --timeout 60, was over during x")),
    ],
)  # fmt: skip
def test_a_case_in_which_the_program_ended_says_how_and_during_what(events, expected):
    before = [{"begin": "a"}, {"at": "x"}, {"end": "a"}]
    assert expected == cut_short([*before, *events], 60.0)
