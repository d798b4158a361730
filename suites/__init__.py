"""asv benchmarks of the catalogue: one measuring pass for each commit, passed to asv case by case.

    PRISM_BENCH_ASV_BACKEND    cuda where a device answers, else numpy_reference
    PRISM_BENCH_ASV_LABELS     all on cuda, S0 elsewhere; several are separated by commas
    PRISM_BENCH_ASV_CASES      all; several are separated by spaces, as `prism-bench run` takes them. The project's
                               configuration may set `asv.cases`. asv shows n/a for what was not chosen
    PRISM_BENCH_ASV_PROCESSES  3; fresh processes that measure every case
    PRISM_BENCH_TUNED          0 launches as the specs define, whatever prism-bench tune found best on this machine
    PRISM_BENCH_ASV_RECORD     a run record whose samples asv gets instead of new ones
    PRISM_BENCH_ASV_PROGRESS   the file for lines of progress; the plugin names asv's standard error

asv starts a process for every value, so nothing here imports the package before it must.
"""
