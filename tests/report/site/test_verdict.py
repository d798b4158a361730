"""The browser says of two records what `analysis.compare.comparison` says: words, reasons, ratios, intervals."""

import json
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from importlib.resources import files

import pytest

from docs.screenshots import installed
from prism_bench.analysis.compare.comparison import compare
from prism_bench.analysis.compare.noise import Floor, Noise
from prism_bench.record.run_record import decode, encode
from prism_bench.report.plain import comparison_json
from prism_bench.report.site.data_files import noise_data, side_of
from prism_bench.report.site.pages.compare import RULES_SHOWN
from tests.report.site.pages import nights
from tests.report.synthetic import MACHINE, SOFTWARE, case_result, cpu_record, gpu_record, measurement, record_of

NAMES = ("the night before", "this night")


SOURCE = files("prism_bench.report.site").joinpath("assets", "verdict.js").read_text("utf-8")


class Node:
    """The script in Node.js, where there is no browser."""

    def evaluate(self, function, values):
        code = f"globalThis.prism = {{}};{SOURCE}\nconst values = JSON.parse(require('fs').readFileSync(0, 'utf-8'));"
        code += f"console.log(JSON.stringify(({function})(values)))"
        ended = subprocess.run(["node", "-e", code], input=json.dumps(values), capture_output=True, text=True)
        assert not ended.returncode, ended.stderr
        return json.loads(ended.stdout)


@pytest.fixture
def script(request):
    if installed() is None and shutil.which("node"):
        return Node()
    page = request.getfixturevalue("page")
    page.evaluate("globalThis.prism = {}")
    page.add_script_tag(content=SOURCE)
    return page


def answered(script, a, b, noise=None):
    """The browser's comparison of the records' sides."""
    sides = [json.loads(json.dumps(side_of(record))) for record in (a, b)]
    floors = json.loads(noise_data(noise).content.split(b", ", 2)[2].removesuffix(b");\n")) if noise else None
    return script.evaluate("([a, b, n, r, w]) => prism.compare(a, b, n, r, w)", [*sides, floors, RULES_SHOWN, NAMES])


def stored(record):
    """The record as it comes back from disk, with four digits a sample."""
    return decode(json.loads(json.dumps(encode(record), default=str)), "a test")


def varied(*factors, seed=1, processes=3, noise=0.004, sass="9f3c", clock=None):
    """A record with a case for each factor, in which that much time passes; `clock` is the SM clock of all samples."""
    cases = []
    for place, factor in enumerate(factors):
        time = measurement("cold_time", 2e-5 * factor, seed=seed + 100 * place, processes=processes, noise=noise)
        clocks = tuple(tuple(clock for _ in group) for group in time.processes) if clock else time.clocks
        told = {"sass": f"{sass}{place}" if sass else None, "launches": 1, "shared_bytes": 0}
        cases.append(case_result("k", workload={"n": place}, measurements=(replace(time, clocks=clocks),), code=told))
    return record_of(*cases)


def wandering(*factors, seed=1, lower=0.0):
    """A record whose times follow an SM clock that differs by 2 % between processes."""
    record = varied(*factors, seed=seed, sass=f"code of {seed}")
    clocks = (1.98e9, 1.96e9, 1.94e9)
    cases = []
    for case in record.cases:
        (time,) = case.measurements
        groups = tuple(tuple(1.98e9 / clock * sample for sample in group)
                       for clock, group in zip(clocks, time.processes, strict=True))  # fmt: skip
        each = tuple(((1 - lower) * clock,) * len(group) for clock, group in zip(clocks, groups, strict=True))
        cases.append(replace(case, measurements=(replace(time, processes=groups, clocks=each),)))
    return replace(record, cases=tuple(cases))


def floors_of(record, between=0.003, within=0.001, **changes):
    """A noise floor for every case of the record."""
    in_cycles = changes.pop("in_cycles", None)
    floor = Floor(2e-5, between, within, 8, 5, 0.01, 0, 20, record.created, None, in_cycles, in_cycles)
    fields = {"machine": MACHINE["id"], "device": MACHINE["device"], "backend": "cuda", "protocol": 1}
    return Noise(**{**fields, **changes}, floors={(case.name, "cold_time"): floor for case in record.cases})


def merged(*kernels):
    """The full record as one whose kernels each come from a device of their own."""
    units = (MACHINE["uuid"], "GPU-b")
    parts = tuple({"uuid": uuid, "kernels": [kernel]} for uuid, kernel in zip(units, kernels, strict=True))
    return gpu_record(machine={key: value for key, value in MACHINE.items() if key != "uuid"}, parts=parts)


def boarded(a, b):
    """Both records, whose second one measured its last cases, and one of the first ones, on another board."""
    cases = [replace(case, board="GPU-b") if place > 19 or not place else case for place, case in enumerate(b.cases)]
    return a, replace(b, cases=tuple(cases))


def launches(later):
    """Cases of 5 us to 1 ms, the code of half of them changed; every launch of B begins later."""
    seconds = [5e-6 * 1.25**place for place in range(24)]
    sides = [varied(*[(one + side * later) / 2e-5 for one in seconds], seed=4 + side) for side in (0, 1)]
    changed = [replace(case, code={"sass": "x"}) if place % 2 else case for place, case in enumerate(sides[1].cases)]
    return sides[0], replace(sides[1], cases=tuple(changed))


def levels():
    """One process of one case is far out; another case, of other code, takes longer by less than that."""
    a, b = varied(*[1.0] * 6), varied(*[1.0] * 5, 1.06, seed=7, sass="b")
    times = a.cases[0].measurements[0]
    stray = replace(times, processes=(tuple(1.08 * one for one in times.processes[0]), *times.processes[1:]))
    return replace(a, cases=(replace(a.cases[0], measurements=(stray,)), *a.cases[1:])), b


# Compiler and source of the first cases: another compiler, another source, both, a source that is not known.
OLD = (("Triton 3.6.0", "a"), ("Triton 3.6.0", "b"), ("NVRTC 13.0", "c"), ("NVRTC 13.0", None), ("nvcc", "d"))
NEW = (("Triton 3.9.0", "a"), ("Triton 3.6.0", "x"), ("NVRTC 13.1", "y"), ("NVRTC 13.1", "z"), ("NVRTC 13.1", "d"))


def built(record, *builds):
    """The record, of whose first cases compiler and source are known."""
    known = [
        replace(case, code={**case.code, "compiler": compiler, "source": source})
        for case, (compiler, source) in zip(record.cases, builds, strict=False)
    ]
    return replace(record, cases=(*known, *record.cases[len(known) :]))


def settings(record, most, watts):
    """The record with other stopping criteria and another power limit."""
    criteria = {"cold_time": {"max_samples": most, "precision": 0.004}, **({"hot_time": {}} if most < 60 else {})}
    boards = ({"uuid": MACHINE["uuid"], "power_limit": watts},)
    return replace(record, protocol={**record.protocol, "criteria": criteria}, boards=boards)


MANY = [1 + 0.004 * place for place in range(-12, 13)]


@cache
def plain():
    return varied(*[1.0] * 25)


@cache
def other():
    return varied(*MANY, seed=7, sass="another")


@cache
def gone():
    return replace(gpu_record(), software={**SOFTWARE, "numpy": "2.5"}, complete=False)


# By name, a function that makes two records and a noise floor: the test processes share them out.
PAIRS = {
    "a slower kernel": lambda: (*nights(gpu_record(), 2, slower="softmax", since=1), None),
    "many sizes of change": lambda: (plain(), other(), None),
    "with a noise floor": lambda: (plain(), other(), floors_of(plain())),
    "a noise floor that no longer holds": lambda: (plain(), other(), floors_of(plain(), between=2e-4, within=1e-5)),
    "a noise floor of another device": lambda: (plain(), other(), floors_of(plain(), device="NVIDIA A100")),
    "identical code that moved": lambda: (plain(), varied(*[1.03] * 25, seed=5), None),
    "identical code of another driver": lambda: (
        plain(),
        replace(varied(*[1.03] * 25, seed=5), software={**SOFTWARE, "driver": "999"}),
        None,
    ),
    "two of many that stand out": lambda: (varied(*[1.0] * 30), varied(*[1.5] * 2, *[1.02] * 28, seed=5), None),
    "later launches": lambda: (*launches(0.0), None),
    "later launches on another host": lambda: (*launches(2e-6), None),
    "few processes and one on another level": lambda: (*levels(), None),
    "seven processes": lambda: (varied(*MANY, processes=7), varied(*[1.0] * 25, processes=7, seed=9, sass="b"), None),
    "a clock that moved, and a control": lambda: (
        varied(*[1.0] * 12, clock=1.98e9),
        varied(*[1.02] * 12, seed=3, clock=1.9e9),
        None,
    ),
    "a slower clock": lambda: (
        varied(*[1.0] * 9, clock=1.98e9),
        varied(*[1.1] * 9, seed=3, sass="b", clock=1.8e9),
        None,
    ),
    "clocks that the times follow": lambda: (
        wandering(*MANY),
        wandering(*[1.0] * 25, seed=7),
        floors_of(plain(), between=0.02, in_cycles=0.001),
    ),
    "a clock that explains a part": lambda: (
        wandering(*MANY),
        wandering(*[1.0] * 25, seed=7, lower=0.02),
        floors_of(plain(), in_cycles=0.01),
    ),
    "one process a side": lambda: (varied(1, 1.2, processes=1), varied(1, 1, processes=1, sass="b"), None),
    "one process a side, known noise": lambda: (
        (one := varied(1, 1.2, processes=1)),
        varied(1, 1, processes=1),
        floors_of(one),
    ),
    "no noise at all": lambda: (varied(1, 1.2, 1, noise=0), varied(1, 1, 1.1, noise=0, sass="b"), None),
    "many processes": lambda: (varied(*MANY, processes=15), varied(*[1.0] * 25, processes=12, seed=9, sass="b"), None),
    "cases that one side has not": lambda: (
        replace(gone(), cases=gone().cases[3:]),
        replace(gone(), complete=True),
        None,
    ),
    "mishaps and software": lambda: (gpu_record(), gone(), None),
    "two units": lambda: (plain(), replace(plain(), machine={**MACHINE, "uuid": "GPU-b"}), None),
    "merged on other units": lambda: (merged("softmax", "matmul"), merged("matmul", "softmax"), None),
    "merged and from one unit": lambda: (gpu_record(), merged("softmax", "matmul"), None),
    "two boards without a control": lambda: (plain(), replace(other(), machine={**MACHINE, "uuid": "GPU-b"}), None),
    "some cases on another board": lambda: (*boarded(*launches(2e-6)), None),
    "other compilers and sources": lambda: (built(plain(), *OLD), built(other(), *NEW), None),
    "on a CPU": lambda: (cpu_record(), replace(cpu_record(), commit="1" * 40), None),
    "on a CPU of another host": lambda: (
        cpu_record(),
        replace(cpu_record(), machine={**cpu_record().machine, "host": {"cores": 99}}),
        None,
    ),
    "other settings": lambda: (settings(plain(), 60, 700.0), settings(plain(), 12, 500.0), None),
}


@pytest.mark.parametrize("what", PAIRS)
def test_the_browser_says_what_python_says(script, what):
    a, b, noise = PAIRS[what]()
    a, b = stored(a), stored(b)
    expected, found = comparison_json(compare(a, b, noise, names=NAMES)), answered(script, a, b, noise)
    told = {one["case"]: one for one in found["cases"]}
    assert found["refused"] is None
    assert expected["notes"] == found["notes"]
    assert [one["case"] for one in expected["cases"]] == list(told)
    for one in expected["cases"]:
        same = ("verdict", "reason", "metric")
        assert {key: one[key] for key in same} == {key: told[one["case"]][key] for key in same}, one["case"]
        assert one["build_change"] == (told[one["case"]].get("build") or [None, None])[1]
        assert one["seconds"] == pytest.approx(told[one["case"]]["seconds"], rel=1e-6)
        if one.get("ratio"):  # the times on the page have the ratio next to them, times what the machine did
            (before, after), shown = one["seconds"], told[one["case"]]
            assert after / before == pytest.approx(shown["ratio"] * shown["machine"], rel=1e-5)
        numbers = [key for key in ("ratio", "low", "high", "floor") if one.get(key) is not None]
        assert {key: one[key] for key in numbers} == pytest.approx(
            {key: told[one["case"]][key] for key in numbers}, rel=1e-5
        )
    control, theirs = found["control"], expected["control"]
    assert [theirs["cases"], len(theirs["changed"]), theirs["excess"]] == [
        control["cases"], control["changed"], control["excess"]]  # fmt: skip
    assert theirs["used"] == control["used"]
    numbers = ("shift", "widening", "factor", "offset")
    assert [theirs[key] for key in numbers] == pytest.approx([control[key] for key in numbers], rel=1e-4, abs=1e-12)


def test_the_pairs_have_every_verdict(script):
    found = [answered(script, stored(a), stored(b), noise) for a, b, noise in (make() for make in PAIRS.values())]
    words = {one["verdict"] for comparison in found for one in comparison["cases"]}
    assert {"slower", "faster", "same", "inconclusive", "not compared"} == words


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"machine": {**MACHINE, "id": "another"}}, "machine"), ({"backend": "null"}, "backend"),
     ({"machine": {**MACHINE, "device": "A100"}}, "device"), ({"protocol": {"version": 2}}, "protocol's version")],
)  # fmt: skip
def test_records_that_do_not_compare_stand_beside_each_other_without_a_verdict(script, changes, word):
    found = answered(script, varied(1, 1), replace(varied(2, 2), **changes))
    assert word == found["refused"]["word"]
    assert {("no verdict", None)} == {(one["verdict"], one["reason"]) for one in found["cases"]}
    assert all(one["low"] < one["ratio"] < one["high"] for one in found["cases"])


def test_times_of_two_clocks_stand_beside_each_other(script):
    gpu, cpu = stored(gpu_record()), stored(cpu_record())
    found = {one["case"]: one for one in answered(script, gpu, cpu)["cases"]}
    for case in cpu.cases:
        one, other = (record.case(case.name).measurement(metric).median
                      for record, metric in ((gpu, "cold_time"), (cpu, "wall_time")))  # fmt: skip
        assert ("no verdict", [one, other]) == (found[case.name]["verdict"], found[case.name]["seconds"])
        assert "ratio" not in found[case.name]
