"""The choices of one machine on disk, and the look-up that measuring commands use.

KeptChoices in `reports/tuning/<machine>.json`, so that tuning a few cases again leaves the others alone:

    schema, machine, device, backend     whose choices these are
    choices     list of objects with the fields of `choice.Choice`, sorted by kernel and workload
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prism_bench.io.files import Schema, four_digits, path_part
from prism_bench.workflows.tuning.bucket import REACH, bucket_of, distance
from prism_bench.workflows.tuning.choice import TuningChoice

SCHEMA = Schema("a store of choices", 1, "prism-bench tune")
DEFAULT_FOLDER = Path("reports/tuning")
_LISTS = ("seconds", "interval")


@dataclass(frozen=True)
class KeptChoices:
    """All choices of one machine's device and backend."""

    machine: str
    device: str
    backend: str
    choices: tuple[TuningChoice, ...] = ()

    def misfit(self, device: str, backend: str) -> str | None:
        """Why these choices say nothing about that device; None where they do."""
        for word, own, other in (("device", self.device, device), ("backend", self.backend, backend)):
            if own != other:
                return f"the stored choices are of {word} {own}, not {other}: none is used"
        return None

    def nearest(
        self, kernel: str, workload: Mapping[str, Any], toolchain: Mapping[str, str]
    ) -> tuple[TuningChoice | None, str]:
        """Return the choice for a workload and how it was found.

        It is that of the size class, else of the nearest within `REACH` doublings on every axis. Among equals those of
        this toolchain come first, then the newest.
        """
        near = [(distance(one.workload, workload), one) for one in self.choices if one.kernel == kernel]
        same = [one for _, one in near if one.bucket == bucket_of(workload)]
        if same:
            return max(same, key=lambda one: (dict(one.toolchain) == dict(toolchain), one.created)), "size class"
        reached = [(apart, one) for apart, one in near if apart <= REACH]
        if not reached:
            return None, "nothing near was tuned"
        least = min(apart for apart, _ in reached)
        among = [one for apart, one in reached if apart == least]
        return max(among, key=lambda one: (dict(one.toolchain) == dict(toolchain), one.created)), "nearest size class"

    def with_choices(self, found: Iterable[TuningChoice]) -> "KeptChoices":
        """Return these choices and `found`, which replace those with the same key."""
        by_key = {one.key: one for one in [*self.choices, *found]}
        ordered = sorted(by_key.values(), key=lambda one: (one.kernel, str(one.workload), one.created))
        return KeptChoices(self.machine, self.device, self.backend, tuple(ordered))


def path_for(machine: str, folder: Path = DEFAULT_FOLDER) -> Path:
    """Where the choices of the machine of that id are kept."""
    return folder / f"{path_part(machine)}.json"


def read_kept(path: Path) -> KeptChoices | None:
    """Return the choices at `path`, None where there is no such file; a ResultsError names what is damaged."""
    data = SCHEMA.read(path)
    if data is None:
        return None
    try:
        whose = {key: str(data[key]) for key in ("machine", "device", "backend")}
        choices = SCHEMA.kind_of(data["choices"], tuple[TuningChoice, ...], path)
    except KeyError as error:
        raise SCHEMA.damaged(path, error) from error
    return KeptChoices(**whose, choices=choices)


def write_kept(kept: KeptChoices, path: Path) -> Path:
    """Keep the choices at `path`, whole or not at all; returns the path."""
    plain = {"machine": kept.machine, "device": kept.device, "backend": kept.backend}
    return SCHEMA.write(path, plain | {"choices": [_encoded(one) for one in kept.choices]})


def _encoded(choice: TuningChoice) -> dict[str, Any]:
    plain = asdict(choice)
    return plain | {name: four_digits(plain[name]) for name in (*_LISTS, "speedup")}
