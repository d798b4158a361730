"""Other people's profilers: ncu, nsys and CUPTI read into one set of metrics, compute-sanitizer into findings.

Readers turn what a tool left behind into nouns (`launches`, `timeline`, `sanitizer`); `metrics` chooses names by chip;
`failures` says what went wrong in a sentence of cause and one of cure. A profiler's durations are never benchmark
times: it flushes caches, runs a kernel several times and may hold clocks.
"""
