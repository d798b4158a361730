"""Fleets: many GPUs as one instrument, on workers of Dask that run on this host, on others or in Slurm.

spec            what `--fleet` names
cluster, fleet  the scheduler, its workers, and their jobs and events
board           a worker with its GPU and cores, and what must be equal on all
describe        what boards report of themselves
placement       which board measures which kernel
job             one job in a worker, alone on its GPU
dispatch        who gets what next; the work of lost workers is planned anew
place           what `--fleet` opens for a command
catalogue_run   a run of a catalogue, from the measured blocks of all boards
pairs, tuning   two builds in turn, and trials of configurations, on all boards
"""

from prism_bench.extension import Extension

EXTENSION = Extension("fleet", offers={"fleet": "place:opened_place"})
