"""Time a few kernels of the catalogue in fresh processes, and print them as a table.

On a GPU these are cold and hot times at S0 and S1, with library peers and the ceilings of this machine; elsewhere
the NumPy references are timed at S0. Nothing is kept.
"""

from rich import print

from prism_bench.analysis.run_analysis import read
from prism_bench.backends import open_default
from prism_bench.catalogue import discover
from prism_bench.report.terminal.record import summary_view
from prism_bench.run import Settings, run

KERNELS = ("vector_add", "softmax", "reduce_sum")


def main() -> None:
    """Run the example."""
    backend, sentence = open_default()
    print(sentence)
    catalogue = discover()
    labels = ("S0", "S1") if backend.name == "cuda" else ("S0",)
    cases = [case for case in catalogue.cases(KERNELS, labels) if case.variant is None]
    record = run(catalogue, backend.name, cases, Settings(processes=1))
    print(summary_view(read(record, catalogue)))


if __name__ == "__main__":
    main()
