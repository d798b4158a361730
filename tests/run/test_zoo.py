"""The zoo of lying kernels: the workbench catches each on a device, and the lies of arithmetic on the emulator too."""

from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.measure import Criterion
from prism_bench.run import Settings, run
from prism_bench.run.session import MeasuringSession
from prism_bench.run.verification import complaint, passed, verify

ZOO = discover(Path(__file__).parent.parent / "zoo")
LIES = {
    "unwritten": "y[999] was never written",
    "planted_nan": "y[7] is nan",
    "mutated_input": "input x was changed",
    "skipped_calls": "1000 of 1000 elements differ (seed 1)",
    "cached_output": "(seed 1)",
    "out_of_order": "elements differ (seed 0)",
    "one_poison": "elements differ (seed 1)",
    "looks_for_poison": "1000 of 1000 elements differ (seed 1)",
}
# Right when they are verified, and no longer when they are timed.
IDLERS = (
    "counts_launches", "looks_for_result", "flag_in_scratch", "remembers_pointers", "remembers_sum",
    "writes_less", "writes_nonsense", "idle_in_place",
)  # fmt: skip
# Right whenever somebody looks, and quick where nothing has changed: the device's clock alone finds them out.
RESTING = {
    "keeps_copy": ("cold_time", "it keeps results: "),
    "rests_in_graphs": ("hot_time", "it does less where nothing changed: "),
}
ON_A_DEVICE_ALONE = ("rests_when_busy",)
HONEST = ("double", "doubled_in_place", "doubled_by_turns", "nearly_doubled")
SETTINGS = Settings(
    criteria={"wall_time": Criterion(precision=0, max_samples=40, seconds=60)}, cpu_baseline=False, peers=False
)


def case(name):
    return ZOO.case(f"{name}[n=1000]")


def test_every_animal_is_named_here():
    assert {
        "does_not_compile",
        "hang",
        "illegal_address",
        *LIES,
        *IDLERS,
        *RESTING,
        *ON_A_DEVICE_ALONE,
        *HONEST,
    } == set(ZOO.kernels)


@pytest.fixture(scope="module")
def emulator():
    try:
        return open_backend("emulator")
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_caught_on_the_emulator(emulator, name):
    entries = verify(emulator, case(name))
    assert not passed(entries)
    assert LIES[name] in complaint(case(name), "emulator", entries)


@pytest.mark.parametrize("name", [*HONEST, *IDLERS, *RESTING])
def test_the_honest_and_the_idle_pass_verification_on_the_emulator(emulator, name):
    assert passed(verify(emulator, case(name)))


def timed(emulator, name, process=0):
    (found,) = MeasuringSession(emulator, ZOO, SETTINGS, process).task(f"{name}[n=1000]")
    return found


@pytest.mark.parametrize("process", [0, 1])
@pytest.mark.parametrize("name", IDLERS)
def test_what_is_idle_once_it_is_timed_is_wrong_and_has_no_time(emulator, name, process):
    found = timed(emulator, name, process)
    assert ("wrong", ()) == (found.status, found.measurements)
    output = "x" if name == "idle_in_place" else "y"
    assert found.reason.startswith(f"{name}[n=1000] on emulator: {output}[")
    assert " of wall_time, though it was right when it was verified" in found.reason
    assert found.verification[-1]["metric"] == "wall_time"
    assert 1 <= found.verification[-1]["sample"] <= 43


@pytest.mark.parametrize("name", HONEST)
def test_the_honest_are_timed_on_the_emulator(emulator, name):
    found = timed(emulator, name)
    assert ("ok", None, 40) == (found.status, found.reason, len(found.measurement("wall_time").samples))


@pytest.fixture(scope="module")
def record():
    """One run over the whole zoo on a device."""
    settings = Settings(processes=2, timeout=15.0, peers=False, cpu_baseline=False)
    return run(ZOO, "cuda", ZOO.cases(), settings)


@pytest.mark.gpu
@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_caught_on_a_device_and_gets_no_time(record, name):
    found = record.case(f"{name}[n=1000]")
    assert ("wrong", ()) == (found.status, found.measurements)
    assert LIES[name] in found.reason


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("hang", "timed out", "no answer within 15 s"),
        ("illegal_address", "crashed", "illegal"),
        ("does_not_compile", "failed", 'does_not_compile.cu(2): error: identifier "undeclared_name" is undefined'),
    ],
)
def test_a_fault_is_marked_with_its_reason(record, name, status, words):
    found = record.case(f"{name}[n=1000]")
    assert ("ok" != found.status, status) == (True, found.status)
    assert words.lower() in found.reason.lower()


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "expected"), RESTING.items())
def test_what_rests_where_nothing_changed_has_no_such_time_on_a_device(record, name, expected):
    metric, words = expected
    found = record.case(f"{name}[n=1000]").measurement(metric)
    assert ("kernel", False) == (found.subject, found.valid)
    assert found.reason.startswith(words)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*IDLERS, *ON_A_DEVICE_ALONE])
def test_an_idler_is_caught_on_a_device_and_gets_no_time(record, name):
    found = record.case(f"{name}[n=1000]")
    assert ("wrong", ()) == (found.status, found.measurements)
    assert "_time, though it was right when it was verified" in found.reason


@pytest.mark.gpu
@pytest.mark.parametrize("name", HONEST)
def test_the_run_goes_on_beside_all_of_them(record, name):
    found = record.case(f"{name}[n=1000]")
    assert "ok" == found.status
    assert 2 == len(found.measurement("cold_time").processes)
    assert all(seconds > 0 for seconds in found.measurement("cold_time").samples)
    assert record.complete


@pytest.mark.gpu
def test_the_device_works_afterwards(record):
    assert record.cases
    assert passed(verify(open_backend("cuda"), case("double")))
