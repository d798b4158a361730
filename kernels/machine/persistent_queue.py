"""A queue served by one cooperative launch: what an item costs on the device, and that it is served rightly.

Every second item is empty; the others are two kernels with a barrier of the grid between them, of which the second
reads what other blocks have written in the first: y = 2 x, then z += y turned around. Persistent
chains are served so (`prism_bench/extensions/persistent`).
"""

from collections.abc import Callable
from typing import Any

from prism_bench import In, InOut, KernelSpec, Launch, Out, Rule, Scratch, Size, Workload, exact, reduction
from prism_bench.extensions.persistent import DESK_WORDS, QueueStage, message, requests, table
from prism_bench.spec import UNIT_ROUNDOFF, AnyArray, ArrayModule, Fill, as_drawn

KERNELS = ("twice", "add_turned")
EMPTY, WORK = 0, 1


def programs(n: int) -> AnyArray:
    """The empty item, and the one with two kernels; x, y and z lie behind one another in the workspace."""
    size = 4 * n
    grid = (-(-n // 256), 1, 1)
    return table([
        [],
        [QueueStage(KERNELS.index("twice"), grid, (0, size, n)),
         QueueStage(KERNELS.index("add_turned"), grid, (size, 2 * size, n))],
    ])  # fmt: skip


def asked(items: int, slots: int) -> AnyArray:
    return requests([WORK if item % 2 else EMPTY for item in range(items)], slots)


def given(words: Callable[..., Any]) -> Fill:
    """Words that follow from the axes; nothing is drawn."""
    return Fill(lambda rng, count, axes: words(axes), "the queue's own words", as_drawn())


def reference(workspace: AnyArray, items: int, n: int, slots: int, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    x, y, z = workspace.reshape(3, n)
    rounds = items // 2
    answers = xp.asarray([message(ticket, 0) for ticket in (slots, *range(1, slots))], "uint64")
    doubled = 2 * x if rounds else y
    return answers, xp.stack((x, doubled, z + rounds * doubled[::-1]))


def workspace_size(workspace: AnyArray, items: int, n: int, xp: ArrayModule) -> AnyArray:
    """The absolute terms of every element."""
    x, y, z = xp.abs(workspace.reshape(3, n))
    doubled = 2 * x if items > 1 else y
    return xp.stack((x, doubled, z + items // 2 * doubled[::-1]))


def rounding(items: int) -> float:
    """gamma of as many additions, each of which rounds what `workspace_size` bounds; doubling is exact.

    Every item adds the same number, so its roundings go the same way and add up to nearly all of this.
    """
    rounded = items // 2 * UNIT_ROUNDOFF["float32"]
    return rounded / (1 - rounded)


spec = KernelSpec(
    entry=f"serve_queue<256, {', '.join(KERNELS)}>",
    arguments=(
        In("requests", "slots", "uint64", fill=given(lambda axes: asked(axes["items"], axes["slots"]))),
        Out("answers", "slots", "uint64"),
        Scratch("pulse", "1", "uint64"),
        Scratch("desk", str(DESK_WORDS), "uint64"),
        In("programs", "program_words", "uint64", fill=given(lambda axes: programs(axes["n"]))),
        InOut("workspace", "3 n"),
        Size("slots"),
        Size("program_words"),
    ),
    derived={"slots": lambda items: items + 1, "program_words": lambda n: len(programs(n))},
    rules=(Rule("items + 1 is 2, 4, 8 ...", lambda items: items > 0 and (items + 1) & items == 0),
           Rule("n >= 1", lambda n: n >= 1)),
    launch=lambda device: Launch(grid=device.sm_count, block=256, cooperative=True),
    reference=reference,
    tolerance={"answers": exact(), "workspace": reduction(workspace_size, terms=rounding)},
    flops=lambda items, n: 2 * n * (items // 2),
    traffic_factor=None,  # an item may be asked to read what the one before it read
    workloads={"S0": Workload(items=63, n=1000), "S1": Workload(items=63, n=1 << 20)},
    edges=(Workload(items=1, n=1), Workload(items=3, n=257), Workload(items=7, n=3000)),
)  # fmt: skip
