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
        """Nothing to say (n/a) where this commit measures otherwise, has no such case, or the case no such metric."""
        if cache["protocol"] != listing()["protocol"]:
            raise NotImplementedError(f"measured by protocol {cache['protocol']}")
        if not self._fault(cache, case) and case not in cache["samples"].get(self.metric, {}):
            raise NotImplementedError(f"{case} has no {self.metric} here")

    def samples(self, cache, case):
        """The samples as asv takes them; an error where the kernel was wrong or its time cannot be trusted."""
        if self._fault(cache, case):
            raise RuntimeError(self._fault(cache, case))
        return {"samples": cache["samples"][self.metric][case], "number": 1}

    def _fault(self, cache, case):
        return cache["faults"].get((case, None)) or cache["faults"].get((case, self.metric))


def measure_commit() -> dict:
    """Run the installed commit's catalogue; plain values, because asv pickles them for other processes.

    `protocol`, `samples` by metric and case, and `faults` by case and metric (None: all of them), why there is no time.
    """
    from prism_bench import workbench
    from prism_bench.catalogue import discover

    backend, labels = _backend_and_labels()
    catalogue = discover()
    settings = workbench.Settings(processes=int(os.environ.get("PRISM_BENCH_ASV_PROCESSES", "3")), peers=False)
    record = workbench.run(catalogue, backend, catalogue.cases(labels=labels), settings)
    return {"protocol": workbench.PROTOCOL, "samples": _samples(record), "faults": _faults(record)}


def _backend_and_labels():
    from prism_bench.backends import open_default

    backend = os.environ.get("PRISM_BENCH_ASV_BACKEND") or open_default()[0].name
    labels = os.environ.get("PRISM_BENCH_ASV_LABELS") or ("S0,S1,S2" if backend == "cuda" else "S0")
    return backend, tuple(labels.split(","))


def _samples(record):
    found = {}
    for case in record.cases:
        for one in case.measurements:
            if one.subject == "kernel" and one.valid and one.samples:
                found.setdefault(one.metric, {})[case.name] = list(one.samples)
    return found


def _faults(record):
    faults = {
        (case.name, None): case.reason or case.status for case in record.cases if case.status not in ("ok", "skipped")
    }
    for case in record.cases:
        for one in case.measurements:
            if one.subject == "kernel" and one.samples and not one.valid:
                faults[case.name, one.metric] = one.reason
    return faults
