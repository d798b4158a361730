"""Each planted reason not to measure is found by its rule, and a sound GPU has none."""

from dataclasses import replace

import pytest
from msgspec import structs

from prism_bench.doctor.fitness import RULES, FitnessFacts, GpuReading, ProbedKernel, figures, judged_fitness
from prism_bench.monitor.probe import Process
from prism_bench.record.measurement import Evidence, Sample

VALUES = {
    "sm_clock": 345e6, "max_sm_clock": 1.98e9, "clock_reasons": 1.0, "power": 75.0, "power_limit": 700.0,
    "default_power_limit": 700.0, "temperature": 34.0, "slowdown_temperature": 92.0, "ecc_uncorrected": 0.0,
    "remap_failed": 0.0, "utilization": 0.0, "memory_free": 149e9, "memory_total": 150e9, "persistence": 1.0,
    "mig": 0.0,
}  # fmt: skip
READING = GpuReading("NVIDIA H200", "GPU-1", VALUES, processes=())
EVIDENCE = Evidence(10.0, 200, {"temperature": (34.0, 38.0, 41.0)})


def launches(seconds, count=200, clock=1.98e9):
    """Launches with quartiles 2 % apart, as a short kernel has them."""
    return tuple(Sample(seconds * (0.99, 1.0, 1.0, 1.01)[number % 4], clock) for number in range(count))


SMALL = ProbedKernel("copy[n=100000]", "small", launches(4e-6), 800_000, 4.8e12)
LARGE = ProbedKernel("copy[n=67108864]", "bandwidth", launches(126e-6), 512 << 20, 4.8e12)
SOUND = FitnessFacts(READING, (SMALL, LARGE), EVIDENCE)


def read(**values):
    """The sound facts with other values; None takes one away."""
    known = {name: value for name, value in {**VALUES, **values}.items() if value is not None}
    return replace(SOUND, reading=replace(READING, values=known))


def seen(**evidence):
    return replace(SOUND, evidence=structs.replace(EVIDENCE, **evidence))


def there(*processes, **evidence):
    return replace(seen(**evidence), reading=replace(READING, processes=processes))


def timed(kernel, *, change=lambda number, seconds: seconds, clock=lambda number: 1.98e9):
    """The sound facts with one kernel's launches changed."""
    samples = tuple(Sample(change(number, one.seconds), clock(number)) for number, one in enumerate(kernel.samples))
    others = [one for one in SOUND.kernels if one is not kernel]
    return replace(SOUND, kernels=(replace(kernel, samples=samples), *others))


def slow_clock(facts):
    """The facts with every launch at 1.2 GHz."""
    return replace(facts, kernels=tuple(replace(one, samples=launches(5e-6, clock=1.2e9)) for one in facts.kernels))


STRANGER = Process(77, "stranger", 2e9, None, False)

PLANTED = [
    ("lost", "no", replace(SOUND, reading=replace(READING, lost="GPU is lost")), "GPU is lost"),
    ("lost", "no", seen(lost="lost at 12:00"), "lost at 12:00"),
    ("unread", "unknown", read(clock_reasons=None), "nothing was read"),
    ("mig", "no", read(mig=1.0), "MIG is on and this is no slice"),
    ("mig", "care", replace(SOUND, reading=replace(READING, is_slice=True)), "a slice: NVIDIA H200"),
    ("events", "no", seen(events=("Xid 79",)), "Xid 79"),
    ("held_down", "no", read(clock_reasons=float(0x48)), "held down: hw slowdown, hw thermal"),
    ("held_down", "no", seen(reasons={"power brake": 0.01}), "held down: power brake"),
    ("throttled", "no", seen(throttled={"thermal": 0.5, "power": 1.0}), "slowed down for: thermal 0.5 s"),
    ("memory_errors", "no", read(ecc_uncorrected=3.0), "3 uncorrected"),
    ("memory_errors", "no", read(remap_failed=1.0), "0 uncorrected, a row could not be replaced"),
    ("neighbours", "care", there(STRANGER), "stranger (pid 77) 2.00 GB"),
    ("neighbours", "no", there(replace(STRANGER, busy=True)), "stranger (pid 77) 2.00 GB"),
    ("neighbours", "no", seen(neighbours=("late (pid 8)",), busy_neighbours=True), "late (pid 8)"),
    ("busy", "no", read(utilization=0.3), "busy 30 % of the time before anything was launched"),
    ("clock_too_low", "no", slow_clock(SOUND), "1.20 GHz of 1.98 GHz at most under load"),
    ("hot", "care", seen(spans={"temperature": (70.0, 80.0, 83.0)}), "83 C, heat slows it down at 92 C"),
    ("hot", "no", read(temperature=90.0), "90 C, heat slows it down at 92 C"),
    ("hot", "care", read(temperature=81.0, slowdown_temperature=None), "81 C, heat slows it down at 90 C"),
    ("clock_set_lower", "care", slow_clock(read(clock_reasons=2.0)), "1.20 GHz of 1.98 GHz, set by an administrator"),
    ("clock_unsteady", "care", timed(LARGE, clock=lambda number: 1.98e9 if number % 4 else 1.8e9), None),
    ("power_limit", "care", read(power_limit=600.0), "600 W of 700 W"),
    ("power_capped", "care", seen(reasons={"sw power cap": 0.25}), "at the power limit in 25 % of the probe"),
    ("unseen_neighbours", "care", replace(SOUND, reading=replace(READING, processes=None)), "unknown: not read"),
    ("little_memory", "care", read(memory_free=30e9), "30.0 GB of 150 GB free"),
    ("persistence", "care", read(persistence=0.0), "persistence mode is off"),
    ("unprobed", "unknown", replace(SOUND, kernels=(), unprobed="CuPy is not installed"), "CuPy is not installed"),
    ("unprobed", "unknown", replace(SOUND, kernels=()), "no launch"),
    ("unprobed", "unknown", replace(SOUND, kernels=(LARGE, replace(SMALL, samples=SMALL.samples[:20]))),
     "20 launches of copy[n=100000]"),
    ("spread", "care", timed(SMALL, change=lambda n, s: s * (1.0 if n % 2 else 1.1)), None),
    ("spread", "no", timed(LARGE, change=lambda n, s: s * (1.0 if n % 2 else 1.25)), None),
    ("drift", "care", timed(LARGE, change=lambda n, s: s * (1 + 0.035 * n / 200)), None),
    ("drift", "no", timed(SMALL, change=lambda n, s: s * (1.5 - 0.5 * n / 200)), None),
    ("odd_launches", "care", timed(LARGE, change=lambda n, s: s * (1.5 if n % 20 == 0 else 1)), None),
    ("odd_launches", "no", timed(SMALL, change=lambda n, s: s * (3 if n % 4 == 0 else 1)), None),
    ("bandwidth", "care", timed(LARGE, change=lambda n, s: 2 * s), None),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "severity", "facts", "found"), PLANTED)
def test_a_planted_problem_is_found_by_its_rule(rule, severity, facts, found):
    problems = {problem.rule: problem for problem in judged_fitness(facts).problems}
    assert severity == problems[rule].severity
    assert found in (None, problems[rule].found)
    assert problems[rule].cause and problems[rule].cure


def test_every_rule_has_a_planted_problem():
    assert set(RULES) == {rule for rule, *_ in PLANTED}


def test_a_sound_gpu_is_fit():
    fitness = judged_fitness(SOUND)
    assert ((), "yes", 0) == (fitness.problems, fitness.answer, fitness.exit_code)


@pytest.mark.parametrize(
    "facts",
    [
        timed(LARGE, change=lambda n, s: s * (1 + 0.01 * n / 200)),
        timed(SMALL, change=lambda n, s: s * (1.36 if n % 60 == 0 else 1)),
        read(clock_reasons=2.0),
        read(power_limit=None, default_power_limit=None, persistence=None),
        there(replace(STRANGER, ours=True)),
        seen(reasons={"sw power cap": 0.01, "idle": 0.2}),
    ],
)
def test_what_a_sound_gpu_does_is_no_problem(facts):
    """Little drift, an odd short launch, clocks locked at the highest, what is not offered, our own process."""
    assert "yes" == judged_fitness(facts).answer


def test_a_clock_that_is_set_is_not_too_low():
    assert ["clock_set_lower"] == [
        problem.rule for problem in judged_fitness(slow_clock(read(clock_reasons=2.0))).problems
    ]


@pytest.mark.parametrize(
    ("facts", "answer", "code"),
    [
        (read(persistence=0.0), "with care", 0),
        (read(clock_reasons=None, persistence=0.0), "unknown", 3),
        (read(clock_reasons=None, persistence=0.0, remap_failed=1.0), "no", 1),
    ],
)
def test_the_gravest_problem_is_the_answer(facts, answer, code):
    fitness = judged_fitness(facts)
    assert (answer, code) == (fitness.answer, fitness.exit_code)


def test_a_neighbour_that_was_seen_twice_is_named_once():
    (problem,) = judged_fitness(there(STRANGER, neighbours=("stranger (pid 77)",))).problems
    assert ("neighbours", "stranger (pid 77) 2.00 GB") == (problem.rule, problem.found)


def test_figures_of_launches():
    found = figures(timed(LARGE, change=lambda n, s: 1e-4 * (1.2 if n < 40 else 1.0)).kernels[0])
    assert (1e-4, 0.0, 0.2) == (found.median, found.spread, found.odd)
    assert pytest.approx(-1 / 6) == found.drift
    assert pytest.approx((512 << 20) / 1e-4) == found.bandwidth
