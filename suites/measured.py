"""The measuring pass of a commit, and the base class of every suite that passes its samples to asv."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from suites.listing import CHECKOUT, configured_catalogue, listing

if TYPE_CHECKING:  # asv starts a process for each value: nothing is imported before it is needed
    from collections.abc import Callable

    from prism_bench.record.measurement import Measurement
    from prism_bench.record.run_record import RunRecord
    from prism_bench.spec.case import Case

Pass = dict[str, Any]
_PROGRESS_SECONDS = 10.0


class Measured:
    """A suite of one `metric`: each case's samples, measured by the package of the installed commit.

    asv computes median, quartiles and interval from `{"samples": [...], "number": 1}` as it does for its own timings.
    Lower is better in asv, always: only times belong here.
    """

    metric = ""
    unit = "seconds"
    param_names = ("case",)

    version: str
    params: list[list[str]]

    def __init_subclass__(cls) -> None:
        # asv would hash the source text, which stays the same when the way of measuring changes.
        cls.version = f"{listing()['protocol']} {cls.metric}"
        cls.params = [listing()["cases"]]

    def setup_cache(self) -> Pass:
        """Return the measuring pass; all suites share it, because asv identifies it by file and line."""
        return measure_commit()

    setup_cache.timeout = 4 * 3600  # pyright: ignore[reportFunctionMemberAccess] - asv reads the attribute

    def setup(self, cache: Pass, case: str) -> None:
        """Skip the case (n/a) if this commit measures otherwise, lacks the case, or has no trusted time of it."""
        if cache["protocol"] != listing()["protocol"]:
            raise NotImplementedError(f"measured by protocol {cache['protocol']}")
        if case not in cache["wrong"] and case not in cache["samples"].get(self.metric, {}):
            reason = cache["untrusted"].get((self.metric, case), "not measured here")
            raise NotImplementedError(f"{case}: {self.metric}: {reason}")

    def samples(self, cache: Pass, case: str) -> dict[str, Any]:
        """Return the samples as asv takes them; raise an error for a wrong kernel, whose times must not be compared."""
        if case in cache["wrong"]:
            raise RuntimeError(cache["wrong"][case])
        return {"samples": cache["samples"][self.metric][case], "number": 1}


def measure_commit() -> Pass:
    """Run the installed commit's catalogue, or read a record; return plain values, because asv pickles them.

    `protocol`; `samples` by metric and case; reasons for `wrong` cases, and for `untrusted` times by metric and case;
    `evidence` by metric and case: the state of the device, per process, as a run record keeps it.
    asv ends a whole comparison at one failure, which is right for a wrong kernel and not for an untrusted time.
    """
    from prism_bench.record import store
    from prism_bench.record.measurement import plain_evidence

    kept = os.environ.get("PRISM_BENCH_ASV_RECORD")
    record = store.read(kept) if kept else _measured()
    if record is None:
        return {"protocol": listing()["protocol"], "samples": {}, "wrong": {}, "untrusted": {}, "evidence": {}}
    times = [(case.name, one) for case in record.cases for one in case.measurements if one.subject == "kernel"]
    return {
        "protocol": record.protocol["version"],
        "samples": _samples(times),
        "wrong": {c.name: c.reason or c.status for c in record.cases if c.status not in ("ok", "skipped")},
        "untrusted": {(one.metric, name): one.reason for name, one in times if not one.valid},
        "evidence": {(one.metric, name): [plain_evidence(seen) for seen in one.evidence] for name, one in times},
    }


def _measured() -> RunRecord | None:
    """Return the record of the chosen cases that this commit has; None if it has none of them."""
    from prism_bench.catalogue import discover
    from prism_bench.run import Settings, lanes_for, run

    backend, labels = _backend_and_labels()
    configured = configured_catalogue()
    catalogue = discover(commit_tree() / configured) if configured else discover()
    processes = int(os.environ.get("PRISM_BENCH_ASV_PROCESSES", "3"))
    settings = Settings(processes=processes, peers=False, cpu_baseline=False, lanes=lanes_for(backend))
    names = set(listing()["cases"])  # an older commit may lack a case, or have cases that nobody chose
    cases = launched([case for case in catalogue.cases(labels=labels) if case.name in names], backend)
    if not cases:
        return None
    try:
        from prism_bench.run import Carrier, PassResults, Watching
    except ImportError:  # an older commit
        return run(catalogue, backend, cases, settings, progress())
    from prism_bench.backends import open_backend
    from prism_bench.record.identity import commit_of

    # No suite has the first call, nor the energy.
    criteria = {metric: chosen for metric, chosen in settings.criteria.items() if metric != "first_call_time"}
    settings = replace(settings, criteria=criteria, watching=Watching(energy=False))
    if backend != "cuda":
        return run(catalogue, backend, cases, settings, progress())
    carrier = Carrier(catalogue, backend, open_backend(backend).facts(), settings.seeds)
    carrier.passed = PassResults(carrier, settings, commit_of(catalogue.folder)[0], cases)
    record = run(catalogue, backend, cases, settings, progress(), carrier=carrier)
    if record.complete:
        carrier.passed.forget()
    return record


def progress() -> Callable[[Any], None]:
    """Return a function that writes the progress of a run where asv itself writes its errors.

    asv keeps what a suite prints until the suite ends, which may be minutes. The plugin in `prism_bench.report.asv`
    names the place. A line comes with each stage and every ten seconds.
    """
    place, began, printed, stage = os.environ.get("PRISM_BENCH_ASV_PROGRESS"), monotonic(), 0.0, None

    def report(event: Any) -> None:
        nonlocal printed, stage
        now = monotonic()
        if place and (now - printed >= _PROGRESS_SECONDS or event.stage != stage):
            printed, stage = now, event.stage
            what = event.stage or f"process {event.process + 1}"
            with suppress(OSError), open(place, "a") as file:
                file.write(f"prism-bench: {now - began:.0f} s: {what}, {event.done} of {event.total}: {event.task}\n")

    return report


def commit_tree() -> Path:
    """Return the tree of the commit that asv measures: its environment's own, else the working tree."""
    own = Path(os.environ.get("ASV_ENV_DIR", "")) / "project"
    return own if os.environ.get("ASV_ENV_TYPE") != "existing" and (own / ".git").exists() else CHECKOUT


def launched(cases: list[Case], backend: str) -> list[Case]:
    """Return the cases by this machine's choices, unless PRISM_BENCH_TUNED is 0."""
    from prism_bench.backends import open_backend
    from prism_bench.record.identity import machine
    from prism_bench.workflows.tuning.choice import TuningMachine, applied

    if os.environ.get("PRISM_BENCH_TUNED") == "0":
        return cases
    opened = open_backend(backend)
    facts = opened.facts()
    return list(applied(cases, TuningMachine(machine(facts)["id"], facts, backend, opened.device)).cases)


def _backend_and_labels() -> tuple[str, tuple[str, ...]]:
    from prism_bench.backends import open_default

    backend = os.environ.get("PRISM_BENCH_ASV_BACKEND") or open_default()[0].name
    labels = os.environ.get("PRISM_BENCH_ASV_LABELS") or ("S0,S1,S2" if backend == "cuda" else "S0")
    return backend, tuple(labels.split(","))


def _samples(times: list[tuple[str, Measurement]]) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for name, one in times:
        if one.valid and one.samples:
            found.setdefault(one.metric, {})[name] = list(one.samples)
    return found
