"""Products of matrices in several precisions: what each costs in accuracy, on the tensor cores and off them.

Each form multiplies inputs of its precision; the error is that of the product against float64, over its norm. On
the emulator the forms run without tensor cores, with the same rounding of their operands. `prism-bench tune
--policy` measures which form to launch for which shape.
"""

from prism_bench.backends import open_backend
from prism_bench.backends.base import Backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.run.verification import passed, verify
from prism_bench.workflows.tuning.crossover import FORMS


def opened() -> Backend:
    """Open the GPU if there is one, else the emulator."""
    try:
        return open_backend("cuda")
    except BackendUnavailable:
        return open_backend("emulator")


def smallest(catalogue, kernel):
    """Return the smallest edge of the kernel that has a product."""
    edges = [case for case in catalogue.edges_of(kernel) if min(case.axes[axis] for axis in "mnk") >= 8]
    return min(edges, key=lambda case: case.axes["m"] * case.axes["n"] * case.axes["k"])


def main() -> None:
    """Run the example."""
    backend, catalogue = opened(), discover()
    print(backend.facts()["device"])
    for form, kernel in FORMS.items():
        case = smallest(catalogue, kernel)
        entries = verify(backend, case)
        worst = max(float(entry["norm_error"]) for entry in entries)
        print(f"{form:5} {case.name}: {'right' if passed(entries) else 'WRONG'}, error {worst:.1e}")


if __name__ == "__main__":
    main()
