"""Fleets: many GPUs as one instrument, on workers of Dask that run on this host, on others or in Slurm.

spec            what `--fleet` names
cluster, fleet  the scheduler, its workers, and their jobs and events
board           a worker with its GPU and cores, and what must be equal on all
describe        what boards report of themselves
placement       which board measures which kernel
job             one job in a worker, alone on its GPU
dispatch        who gets what next; the work of lost workers is planned anew
catalogue_run   a run of a catalogue, from the measured blocks of all boards
"""

from prism_bench.extensions.fleet.board import BoardBackend, FleetBoard
from prism_bench.extensions.fleet.catalogue_run import FleetProgress, FleetRun
from prism_bench.extensions.fleet.describe import boards_of
from prism_bench.extensions.fleet.dispatch import BoardState
from prism_bench.extensions.fleet.fleet import Fleet, opened
from prism_bench.extensions.fleet.spec import FleetSpec, parse

__all__ = [
    "BoardBackend",
    "BoardState",
    "Fleet",
    "FleetBoard",
    "FleetProgress",
    "FleetRun",
    "FleetSpec",
    "boards_of",
    "opened",
    "parse",
]
