"""External profilers: ncu, nsys and CUPTI read into one set of metrics, compute-sanitizer into findings.

Readers turn what a tool left behind into data types (`launches`, `timeline`, `sanitizer`); `metrics` chooses names by
chip; `failures` explains what went wrong, with cause and cure. A profiler's durations are never benchmark times: it
flushes caches, runs a kernel several times and may hold clocks.
"""
