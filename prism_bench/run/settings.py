"""Settings of a run: everything that a series of results must share to be compared."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from prism_bench.measure import Criterion
from prism_bench.monitor import Rules
from prism_bench.monitor.sampler import HERTZ
from prism_bench.spec.case import Case
from prism_bench.spec.metric import STAND_INS

KEPT = ("processes", "seed", "seeds", "criteria")  # in a record
_LATER = (
    "watching",
    "peer_timeout",
    "peer_processes",
    "peer_first_process_only",
    "peer_repeated_within",
    "known_code",
)  # than the first version
_TUPLES = ("seeds", "first_process_only", "smallest_only", "peer_first_process_only")
BLAS_THREADS = 1  # of a process that times; a wall time with more would depend on the host's other work
PROTOCOL = 1  # raise it when the same kernel on the same machine would get other times


@dataclass(frozen=True)
class Watching:
    """How the device is watched: `hertz` of the sampler (0: not at all), and the `rules` for its samples.

    `energy` is whether the energy of a launch is measured, in the first process, for cases of `energy_labels`: S0 ends
    before the counter moves, and S2 would add nothing to S1.
    """

    hertz: float = HERTZ
    rules: Rules = field(default_factory=Rules)
    energy: bool = True
    energy_labels: tuple[str, ...] = ("S1",)


@dataclass(frozen=True)
class Settings:
    """Criteria by metric; `seeds` of verification; `processes` that measure; `timeout` in seconds for one case.

    `peer_timeout` is how many seconds a peer may take for each step (its check, each metric) before its process is
    ended; its set-up, which may compile, may take three times as long. `lanes` processes verify side by side before
    anything is timed; with one, the first measuring process verifies. Metrics of `smallest_only` are the same at every
    size, so S1 and S2 go without, and so do variants, which share their kernel's source. A peer's time, which is shown
    as a ratio of two digits, needs `peer_precision` only, in the first `peer_processes`: two show whether it is
    unstable. Peers are compared by their cold times, so the first process alone measures their metrics of
    `peer_first_process_only`, and all of a peer that took more than `peer_repeated_within` times as long as the kernel:
    another process would not change who is faster (None: it is measured again). `known_code` has by case the machine
    code whose first call an earlier record has: that of other code is measured. `known_seconds` has by task what its
    verification took in an earlier run; workers do not get it.
    """

    processes: int = 3
    lanes: int = 1
    seed: int = 0
    seeds: tuple[int, ...] = (0, 1)
    timeout: float = 180.0
    peer_timeout: float = 60.0
    peers: bool = True
    cpu_baseline: bool = True
    criteria: dict[str, Criterion] = field(
        default_factory=lambda: {
            "cold_time": Criterion(precision=0.004, max_samples=60, seconds=0.35),
            "hot_time": Criterion(precision=0.004, max_samples=24, seconds=0.25),
            "end_to_end_time": Criterion(precision=0.05, min_samples=5, max_samples=8, seconds=0.3),
            "first_call_time": Criterion(min_samples=1, max_samples=1),
            "wall_time": Criterion(precision=0.01, max_samples=24, seconds=0.4),
        }
    )
    first_process_only: tuple[str, ...] = ("first_call_time",)
    smallest_only: tuple[str, ...] = ("first_call_time",)
    peer_precision: float = 0.01
    peer_processes: int = 2
    peer_first_process_only: tuple[str, ...] = ("hot_time",)
    peer_repeated_within: float | None = 2.0
    watching: Watching = field(default_factory=Watching)
    known_code: dict[str, str] = field(default_factory=dict[str, str])
    known_seconds: dict[str, float] = field(default_factory=dict[str, float])

    def seeds_of(self, case: Case) -> tuple[int, ...]:
        """Return the seeds to verify the case with: one alone at the large sizes, which edges and S0 precede."""
        return self.seeds[:1] if case.label in ("S1", "S2") else self.seeds

    def left_out(self, case: Case, process: int, code: object = None) -> tuple[str, ...]:
        """Return the metrics that this process does not measure of the case, whose machine code is `code`."""
        known = code is not None and code == self.known_code.get(case.name)
        is_other = case.label in ("S1", "S2") or case.variant is not None or known
        return (self.first_process_only if process else ()) + (self.smallest_only if is_other else ())

    def left_out_of_peers(self, process: int) -> tuple[str, ...]:
        """Return the metrics of peers that this process does not measure."""
        return self.peer_first_process_only if process else ()

    def criterion(self, metric: str, subject: str) -> Criterion:
        """Return when a metric of the kernel, a peer or the CPU has enough samples."""
        chosen = self.criteria[metric]
        if not subject.startswith("peer:"):
            return chosen
        return replace(chosen, precision=max(chosen.precision, self.peer_precision), seconds=chosen.seconds / 2)

    def protocol(self, backend: str = "") -> dict[str, Any]:
        """Return what the run record keeps of the settings, as JSON gives it back; on a CPU the threads of BLAS, too.

        A wall time with other threads is another series.
        """
        plain = {**asdict(self), "seeds": list(self.seeds)}
        threads = {"blas_threads": BLAS_THREADS} if backend in STAND_INS else {}
        return {"version": PROTOCOL, **{key: plain[key] for key in KEPT}, **threads}


def to_plain(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain values.

    What a worker of an older checkout does not know is included only where it was chosen.
    """
    usual = Settings()
    chosen = {key for key in _LATER if getattr(settings, key) != getattr(usual, key)}
    plain = {key: value for key, value in asdict(settings).items() if key not in _LATER or key in chosen}
    del plain["known_seconds"]
    return plain


def from_plain(plain: dict[str, Any]) -> Settings:
    """Return the settings of `to_plain` after a trip through JSON; unknown fields are skipped."""
    plain = {key: value for key, value in plain.items() if key in Settings.__dataclass_fields__}
    if "watching" in plain:
        watching = plain["watching"]
        labels, rules = tuple(watching["energy_labels"]), Rules(**watching["rules"])
        plain["watching"] = Watching(**{**watching, "energy_labels": labels, "rules": rules})
    criteria = {metric: Criterion(**values) for metric, values in plain["criteria"].items()}
    lists = {key: tuple(plain[key]) for key in _TUPLES if key in plain}
    return Settings(**{**plain, **lists, "criteria": criteria})
