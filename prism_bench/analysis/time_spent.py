"""Where the time of a run went, by phase: from the seconds that its record keeps."""

from prism_bench.record.run_record import CaseResult, RunRecord

COMPILATION, VERIFICATION, PREPARATION, KERNELS, CPU, WAITING = (
    "compilation ahead", "verification", "preparation", "kernels", "cpu", "starts and waiting",
)  # fmt: skip
_PHASES = {
    "preparing": PREPARATION, "verifying": VERIFICATION, "kernel": KERNELS, "energy": "energy", "cpu": CPU,
    "peers importing": "imports of libraries", "peers forms": "forms of peers", "peers state": "state of libraries",
}  # fmt: skip
_STAGES = {"compiling": COMPILATION, "untimed": VERIFICATION}
_PEER = "peer:"


def time_spent(record: RunRecord) -> dict[str, float]:
    """Return the seconds of each phase, the longest first; nothing for a record that keeps none.

    Together they are the run's duration, of a merged record that of all parts. Verification side by side counts by the
    wall clock. `starts and waiting` is what no case accounts for: starts of processes, messages, saving.
    """
    if not record.spent:
        return {}
    found: dict[str, float] = {}
    for stage, name in _STAGES.items():
        found[name] = found.get(name, 0.0) + record.spent.get(stage, 0.0)
    for case in record.cases:
        for phase, seconds in case.spent.items():
            if phase != "untimed":  # these run side by side; their stage has the wall time
                name = _PHASES.get(phase) or _of_peer(case, phase)
                found[name] = found.get(name, 0.0) + seconds
    whole = sum(float(part.get("duration") or 0.0) for part in record.parts) or record.duration
    found[WAITING] = max(0.0, whole - sum(found.values()))
    return dict(sorted(((name, seconds) for name, seconds in found.items() if seconds), key=lambda one: -one[1]))


def window_seconds(record: RunRecord) -> tuple[float, float]:
    """Return the seconds of the run within measurement windows, of kernels and of peers; the rest is around them."""
    kernels = peers = 0.0
    for case in record.cases:
        for one in case.measurements:
            if one.metric != "launch_time":  # it comes with the cold time, in the same window
                seconds = sum(seen.seconds for seen in one.evidence)
                kernels, peers = (kernels, peers + seconds) if one.subject != "kernel" else (kernels + seconds, peers)
    return kernels, peers


def _of_peer(case: CaseResult, phase: str) -> str:
    """Return the phase of a peer by its form; a record without the peer's facts gives it by the name alone."""
    name = phase.removeprefix(_PEER)
    ending = name.rpartition("_")[2]
    form = case.peers[name].get("form") if name in case.peers else None
    return f"peers {form or (ending if ending in ('compiled', 'autotuned') else 'eager')}"
