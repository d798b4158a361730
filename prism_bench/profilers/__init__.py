"""External profilers: ncu, nsys and CUPTI read into one set of metrics, compute-sanitizer into findings.

tools     the tools as programs; their failures with cause and cure; compute-sanitizer
metrics   one set of metrics, the counters of each chip, numbers as tools print them
ncu       Nsight Compute: commands, CSV, reports, source pages
nsys      Nsight Systems: commands, CSV, SQLite exports
cupti     CUPTI's activity records of this process
timeline  work, calls and ranges of one capture

A profiler's durations are never benchmark times: it flushes caches, runs a kernel several times and may hold clocks.
"""
