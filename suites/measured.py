"""The one measuring pass of a commit, and the base of every suite that hands its samples to asv."""

import os

from suites.listing import listing


class Measured:
    """A suite of one `metric`: each case's samples, taken by the workbench of the installed commit.

    asv computes median, quartiles and interval from `{"samples": [...], "number": 1}` as it does for its own timings.
    Lower is better in asv, always: only times belong here.
    """

    metric = ""
    unit = "seconds"
    param_names = ("case",)

    def __init_subclass__(cls):
        # asv would hash the source text, which stays the same when the way of measuring changes.
        cls.version = f"{listing()['protocol']} {cls.metric}"
        cls.params = [listing()["cases"]]

    def setup_cache(self):
        """All suites share this pass: asv knows it by file and line."""
        return measure_commit()

    setup_cache.timeout = 4 * 3600

    def setup(self, cache, case):
        """Nothing to say (n/a) where this commit measures otherwise, has no such case, or the case no trusted time."""
        if cache["protocol"] != listing()["protocol"]:
            raise NotImplementedError(f"measured by protocol {cache['protocol']}")
        if case not in cache["wrong"] and case not in cache["samples"].get(self.metric, {}):
            reason = cache["untrusted"].get((self.metric, case), "not measured here")
            raise NotImplementedError(f"{case}: {self.metric}: {reason}")

    def samples(self, cache, case):
        """The samples as asv takes them; an error for a wrong kernel, whose times nobody should compare."""
        if case in cache["wrong"]:
            raise RuntimeError(cache["wrong"][case])
        return {"samples": cache["samples"][self.metric][case], "number": 1}


def measure_commit() -> dict:
    """Run the installed commit's catalogue, or take a record's word; plain values, because asv pickles them.

    `protocol`; `samples` by metric and case; reasons for `wrong` cases, and for `untrusted` times by metric and case;
    `evidence` by metric and case: the state of the device, per process, as a run record keeps it.
    asv ends a whole comparison at one failure: a wrong kernel is worth that, a time that was thrown out is not.
    """
    from prism_bench import store
    from prism_bench.evidence import plain_evidence

    kept = os.environ.get("PRISM_BENCH_ASV_RECORD")
    record = store.read(kept) if kept else _measured()
    times = [(case.name, one) for case in record.cases for one in case.measurements if one.subject == "kernel"]
    return {
        "protocol": record.protocol["version"],
        "samples": _samples(times),
        "wrong": {c.name: c.reason or c.status for c in record.cases if c.status not in ("ok", "skipped")},
        "untrusted": {(one.metric, name): one.reason for name, one in times if not one.valid},
        "evidence": {(one.metric, name): [plain_evidence(seen) for seen in one.evidence] for name, one in times},
    }


def _measured():
    from prism_bench.catalogue import discover
    from prism_bench.run import Settings, run

    backend, labels = _backend_and_labels()
    catalogue = discover()
    processes = int(os.environ.get("PRISM_BENCH_ASV_PROCESSES", "3"))
    settings = Settings(processes=processes, peers=False, cpu_baseline=False)
    return run(catalogue, backend, launched(catalogue.cases(labels=labels), backend), settings)


def launched(cases, backend: str) -> list:
    """The cases by this machine's choices, unless PRISM_BENCH_TUNED is 0."""
    from prism_bench.backends import open_backend
    from prism_bench.identity import machine
    from prism_bench.tuning.applied import TuningMachine, applied

    if os.environ.get("PRISM_BENCH_TUNED") == "0":
        return cases
    opened = open_backend(backend)
    facts = opened.facts()
    return list(applied(cases, TuningMachine(machine(facts)["id"], facts, backend, opened.device)).cases)


def _backend_and_labels():
    from prism_bench.backends import open_default

    backend = os.environ.get("PRISM_BENCH_ASV_BACKEND") or open_default()[0].name
    labels = os.environ.get("PRISM_BENCH_ASV_LABELS") or ("S0,S1,S2" if backend == "cuda" else "S0")
    return backend, tuple(labels.split(","))


def _samples(times):
    found = {}
    for name, one in times:
        if one.valid and one.samples:
            found.setdefault(one.metric, {})[name] = list(one.samples)
    return found
