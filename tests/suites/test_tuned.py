"""What asv is handed was launched by this machine's choices, unless the environment says otherwise."""

from pathlib import Path

from prism_bench.catalogue import discover
from prism_bench.record import identity
from prism_bench.workflows.tuning.choice import KeptChoices, path_for, write_kept
from prism_bench.workflows.tuning.choice import launched as launched_hash
from suites.measured import launched
from tests.workflows.tuning.choices import choice

CATALOGUE = discover(Path(__file__).parent.parent / "tunable")


def test_choices_of_this_machine_are_used_and_may_be_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    machine = identity.machine({})["id"]
    found = choice(workload={"n": 1000}, toolchain={}, source=launched_hash(CATALOGUE.kernel("tripled")))
    write_kept(KeptChoices(machine, "no device (scripted times)", "null", (found,)), path_for(machine))
    cases = CATALOGUE.cases(["tripled"], ["S0"])
    assert [{"block": 64}, {}] == [case.choice for case in launched(cases, "null")]
    monkeypatch.setenv("PRISM_BENCH_TUNED", "0")
    assert [{}, {}] == [case.choice for case in launched(cases, "null")]
