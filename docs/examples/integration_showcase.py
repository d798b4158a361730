"""One kernel through all steps: verified, measured, kept, read again, compared with a budget, and judged.

Each step hands its result to the next, and none reaches back. The record goes to a temporary folder.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from prism_bench import Budget, load
from prism_bench.analysis.run_analysis import exit_code, read
from prism_bench.backends import open_default
from prism_bench.catalogue import discover
from prism_bench.record import store
from prism_bench.run import Settings, run
from prism_bench.run.verification import passed, verify
from prism_bench.units import time_text

KERNEL = "vector_add"


def main() -> None:
    """Run the example."""
    backend, sentence = open_default()
    print(sentence)
    catalogue = discover()

    edges = [case for case in catalogue.edges([KERNEL]) if case.variant is None]
    right = [case for case in edges if passed(verify(backend, case))]
    print(f"verified: {len(right)} of {len(edges)} edges of {KERNEL}")

    cases = [case for case in catalogue.cases([KERNEL], ["S0"]) if case.variant is None]
    record = run(catalogue, backend.name, cases, Settings(processes=1))
    with TemporaryDirectory() as folder:
        path = store.save(record, store.path_for(record, Path(folder)))
        table = load(path)
        print(f"kept: {path.name}, {len(table)} samples of {', '.join(sorted(table['metric'].unique()))}")
        again = store.read(path)

    reading = read(again, catalogue)
    for case in reading.cases:
        times = ", ".join(f"{one.metric} {time_text(one.median)}" for one in case.measurements if one.samples)
        print(f"measured: {case.name}: {times}")
    promise = Budget("cold_time" if backend.name == "cuda" else "wall_time", at_most=1.0)
    for case in reading.cases:
        found = case.measurement(promise.metric)
        seconds = found.median if found else None
        print(f"budget: {promise.metric} of at most {time_text(promise.at_most)}: {promise.verdict(seconds)}")
    print(f"judged: {len(reading.findings)} findings, a command would end with {exit_code(reading.findings)}")


if __name__ == "__main__":
    main()
