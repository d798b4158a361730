"""Fleets: many GPUs as one instrument, on workers of Dask that run on this host, on others or in Slurm.

place           the fleet of a command with `--fleet`, and its progress
cluster         the value of `--fleet`; clusters of Dask
fleet           the boards (a worker and its GPU each), their jobs and events
dispatch        which board measures which kernel; the work of lost workers is planned anew
catalogue_run   a run of a catalogue, from the measured blocks of all boards
pairs           two builds in turn, and trials of configurations, on all boards
worker_setup    set-up of local workers
"""

from prism_bench.extension import Extension

EXTENSION = Extension("fleet", offers={"fleet place": "place:opened_place"})
