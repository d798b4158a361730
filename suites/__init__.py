"""asv benchmarks of the catalogue: one measuring pass for each commit, passed to asv case by case.

    PRISM_BENCH_ASV_BACKEND    cuda where a device answers, else numpy_reference
    PRISM_BENCH_ASV_LABELS     all on cuda, S0 elsewhere; several are separated by commas
    PRISM_BENCH_ASV_PROCESSES  3; fresh processes that measure every case
    PRISM_BENCH_TUNED          0 launches as the specs define, whatever prism-bench tune found best on this machine
    PRISM_BENCH_ASV_RECORD     a run record whose samples asv gets instead of new ones

asv starts a process for every value, so nothing here imports the package before it must.
"""
