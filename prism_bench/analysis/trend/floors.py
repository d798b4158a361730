"""The noise floors that are kept for the machines of a history."""

from pathlib import Path

from prism_bench.analysis.noise_file import path_for, read_noise
from prism_bench.store import History


def kept_floors(history: History, folder: Path) -> dict[tuple[str, str, str, str], float]:
    """By machine, backend, case and metric, as far as `prism-bench noise` measured them; a damaged file is refused."""
    floors: dict[tuple[str, str, str, str], float] = {}
    if not folder.is_dir():
        return floors
    for machine in sorted({facts.machine for facts in history.records}):
        noise = read_noise(path_for(machine, folder))
        for (case, metric), floor in noise.floors.items() if noise else ():
            floors[machine, noise.backend, case, metric] = floor.smallest_change
    return floors
