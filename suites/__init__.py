"""What asv asks of the catalogue: for each commit one measuring pass, handed over case by case.

    PRISM_BENCH_ASV_BACKEND    cuda where a device answers, else numpy_reference
    PRISM_BENCH_ASV_LABELS     all on cuda, S0 elsewhere; several are separated by commas
    PRISM_BENCH_ASV_PROCESSES  3; fresh processes that measure every case
    PRISM_BENCH_TUNED          0 launches as the specs say, whatever prism-bench tune found best on this machine
    PRISM_BENCH_ASV_RECORD     a run record whose samples are handed over instead of new ones

asv starts a process for every value it is handed, so nothing here imports the package before it must.
"""
