"""The state of the device during a measurement: NVML samples, evidence, rules, alerts, exports.

nvml, devices, quantities, reading, calls, probe, gpm, processes, xid    one look at one device
sampler, window, watching, rules, energy                                 evidence for a measurement
executions, alerts, export, csv_file, exporter                           for people who watch
"""

from prism_bench.monitor.sampler import Blind, Rules, Sampler, energy_per_launch, remarks, sampling, watched

__all__ = ["Blind", "Rules", "Sampler", "energy_per_launch", "remarks", "sampling", "watched"]
