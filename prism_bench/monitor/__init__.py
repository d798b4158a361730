"""The state of the device during a measurement: NVML samples, evidence, rules, alerts, exports.

nvml, devices, quantities, reading, calls, probe, gpm, processes, xid    one look at one device
sampler, window, watching, rules, energy                                 evidence for a measurement
executions, alerts, export, csv_file, exporter                           for people who watch
"""

from prism_bench.monitor.energy import energy_per_launch
from prism_bench.monitor.rules import Rules, remarks
from prism_bench.monitor.sampler import Sampler
from prism_bench.monitor.watching import Blind, sampling, watched

__all__ = ["Blind", "Rules", "Sampler", "energy_per_launch", "remarks", "sampling", "watched"]
