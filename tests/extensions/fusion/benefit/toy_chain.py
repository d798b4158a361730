"""A chain of two launches and its fused form, y = 2 x + 1, with records in which its times are planted."""

from pathlib import Path

from prism_bench import Chain, In, KernelSpec, Launch, Out, Scratch, Size, Variant, Workload
from prism_bench.catalogue import Catalogue
from prism_bench.extensions.fusion.benefit import Sources, ledgers
from prism_bench.extensions.persistent.records import EMPTY, ItemSpread, ItemTimes, LatencyRecord
from tests.report.synthetic import case_result, record_of

BANDWIDTH, LAUNCH = 1e12, 1e-6
N = 1000


def baseline(n):
    return (Launch(n, 1, entry="twice", arguments=("x", "middle", "own", "n")),
            Launch(n, 1, entry="add", arguments=("middle", "y", "n")))  # fmt: skip


SPEC = KernelSpec(
    name="toy_chain",
    family="toys",
    entry="both",
    arguments=(In("x", "n"), Out("y", "n"), Scratch("middle", "n"), Scratch("own", "8"), Size("n")),
    launch=baseline,
    reference=lambda x: 2 * x + 1,
    workloads={"S0": Workload(n=N), "S1": Workload(n=100 * N)},
    variants={
        "full": Variant("one launch", launch=lambda n: Launch(n, 1, arguments=("x", "y", "n"))),
        "large": Variant("one launch, other sizes", launch=lambda n: Launch(n, 1, arguments=("x", "y", "n")),
                         workloads={"S0": Workload(n=7)}),
    },
    chains=(
        Chain("transfer_entropy", {"baseline": None, "full": "full"}, between=("middle",)),
        Chain("served", {"baseline": None, "full": "full", "persistent": "full"}, between=("middle",)),
        Chain("apart", {"baseline": None, "full": "large"}, between=("middle",)),
    ),
)  # fmt: skip
TOY, SERVED, APART = SPEC.chains
CATALOGUE = Catalogue(Path("toys"), {"toy_chain": SPEC})
BEFORE, AFTER = f"toy_chain[n={N}]", f"toy_chain:full[n={N}]"


def result(variant=None, times=None, n=N, error=1e-6, **changes):
    """The stage's case as a run leaves it; `times` are seconds by metric."""
    name = f"toy_chain:{variant}[n={n}]" if variant else f"toy_chain[n={n}]"
    return case_result(
        "toy_chain", variant=variant, name=name, workload={"n": n}, times=times or {}, bytes=8 * n,
        **{"verification": ({"max_relative": error}, {"max_relative": error / 2}), **changes},
    )  # fmt: skip


def machine():
    """An empty kernel and a copy, so that a launch costs LAUNCH at least and bytes move at BANDWIDTH."""
    empty = case_result("null", times={"hot_time": LAUNCH, "cold_time": 3e-6}, ceiling="launch", bytes=0)
    copy = case_result("copy", "S2", times={"cold_time": 1e-2}, ceiling="bandwidth", bytes=int(BANDWIDTH * 1e-2))
    return empty, copy


def record(*cases, **changes):
    return record_of(*machine(), *cases, **changes)


BEFORE_TIMES = {"cold_time": 12e-6, "hot_time": 8e-6, "launch_time": 20e-6}
AFTER_TIMES = {"cold_time": 4e-6, "hot_time": 3e-6, "launch_time": 2.5e-6}
MEASURED = record(result(times=BEFORE_TIMES), result("full", times=AFTER_TIMES, error=2e-6))


def spread(seconds):
    return ItemSpread(seconds, seconds * 0.9, seconds * 1.1, seconds * 2, 100)


def times(case, form, answer, error=None):
    return ItemTimes(case, form, spread(answer), spread(answer / 2), error)


ROWS = (
    times(EMPTY, "persistent", 4e-6),
    times(AFTER, "persistent", 6e-6, 3e-7),
    times(AFTER, "launches", 30e-6, 3e-7),
    times(BEFORE, "graph", 15e-6),
    times(BEFORE, "launch", 20e-6),
    times(AFTER, "graph", 9e-6),
    times(AFTER, "launch", 8e-6),
)


def latencies(*rows):
    """Times of items, as scripts/persistent leaves them."""
    return LatencyRecord({"id": "toy"}, "2026-11-22T00:00:00", None, rows)


def toy_ledger(read=MEASURED, chain=TOY, label="S0", **sources):
    """The ledger of one chain at one label."""
    return ledgers([(SPEC, chain)], [label], Sources(read, **sources))[0]
