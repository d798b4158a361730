"""The state of the device during a measurement.

nvml        NVML: open, close, errors, calls, devices
probe       one reading of one device; other processes; Xid errors
sampler     readings in a thread, the evidence of a window, rules
executions  the last executions of kernels
alerts      limits and current alerts
station     a live view: JSON, CSV, delivery of alerts
exporter    Prometheus metrics, for monitor --serve
"""

from prism_bench.monitor.sampler import Blind, Rules, Sampler, remarks, sampling, watched

__all__ = ["Blind", "Rules", "Sampler", "remarks", "sampling", "watched"]
