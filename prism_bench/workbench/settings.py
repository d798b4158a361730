"""How a run measures: everything that a series of results must share to be compared."""

from dataclasses import asdict, dataclass, field

from prism_bench.measure import Criterion

PROTOCOL = 1  # raise it when the same kernel on the same machine would read differently


@dataclass(frozen=True)
class Settings:
    """Criteria by metric; `seeds` of verification; `processes` that measure; `timeout` in seconds for one case."""

    processes: int = 3
    seed: int = 0
    seeds: tuple[int, ...] = (0, 1)
    timeout: float = 180.0
    peers: bool = True
    cpu_baseline: bool = True
    criteria: dict = field(
        default_factory=lambda: {
            "cold_time": Criterion(precision=0.004, max_samples=60, seconds=0.35),
            "hot_time": Criterion(precision=0.004, max_samples=24, seconds=0.25),
            "end_to_end_time": Criterion(precision=0.05, min_samples=5, max_samples=8, seconds=0.3),
            "first_call_time": Criterion(min_samples=1, max_samples=1),
            "wall_time": Criterion(precision=0.01, max_samples=24, seconds=0.4),
        }
    )
    first_process_only: tuple[str, ...] = ("first_call_time",)

    def protocol(self) -> dict:
        """What the run record keeps of the settings, as JSON gives it back."""
        plain = {**asdict(self), "seeds": list(self.seeds)}
        return {"version": PROTOCOL, **{key: plain[key] for key in ("processes", "seed", "seeds", "criteria")}}


def from_plain(plain: dict) -> Settings:
    """The inverse of `dataclasses.asdict` after a trip through JSON."""
    criteria = {metric: Criterion(**values) for metric, values in plain["criteria"].items()}
    lists = {key: tuple(plain[key]) for key in ("seeds", "first_process_only")}
    return Settings(**{**plain, **lists, "criteria": criteria})
