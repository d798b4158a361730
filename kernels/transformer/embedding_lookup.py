"""out[t, :] = table[id[t], :]; an id outside the table gives zeros, and so does `padding` (-1 for none).

The policy `raise` counts the ids outside the table too (`checked`), so that the caller can refuse them.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Size,
    Variant,
    Workload,
    Zero,
    exact,
    integers,
)
from prism_bench.spec import AnyArray, Array, ArrayModule, Peer

from ..peers.strong_peers import liger_embedding

# Memory-bound: 8 bytes an element at the copy rate; less where ids repeat, since a slice of all rows in use
# fits the L2 cache.


THREADS, TOKENS = 256, 2  # of a block; tokens of a thread


def launch_of(form: str, id_type: str = "int") -> Callable[..., Any]:
    """A group of four floats of several tokens per thread where rows are whole groups of four."""

    def launch(tokens: int, cols: int) -> Launch | tuple[Launch | Zero, ...]:
        width, lanes = (4, 16) if cols % 4 == 0 else (1, 32)
        grid = (-(-tokens // (THREADS // lanes * TOKENS)), -(-cols // (lanes * width)))
        step = Launch(grid, THREADS, entry=f"{form}<{width}, {id_type}>")
        return (Zero("invalid"), step) if form.endswith("checked") else step

    return launch


def reference(id: AnyArray, table: AnyArray, vocabulary: int, padding: int, xp: ArrayModule) -> AnyArray:
    """Rows of the table by number; a table of no rows has none to take."""
    known = (id >= 0) & (id < vocabulary) & (id != padding)
    if vocabulary == 0:
        return xp.zeros((id.size, table.shape[1]), "float32")
    rows = table.astype("float32")[xp.where(known, id, 0)]
    return xp.where(known[:, None], rows, xp.float32(0))


def reference_checked(
    id: AnyArray, table: AnyArray, vocabulary: int, padding: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray]:
    outside = ((id < 0) | (id >= vocabulary)).sum()
    return reference(id, table, vocabulary, padding, xp), outside.astype("int32")


def torch_embedding(torch: ModuleType, id: AnyArray, table: AnyArray) -> Any:
    return torch.nn.functional.embedding(id, table)


def ids_of(dtype: str) -> Array:
    return In("id", "tokens", dtype=dtype, fill=integers(0, "vocabulary"))


def traffic(tokens: int, cols: int, id_bytes: int = 4) -> int:
    """A row read and a row written for each token."""
    return tokens * (8 * cols + id_bytes)


table, out = In("table", "vocabulary cols"), Out("out", "tokens cols")
sizes = (Size("tokens", "int64"), Size("vocabulary", "int64"), Size("cols"), Size("padding", "int64"))

odd_ids = [0, -1, 6, 7, 3, -(2**31), 2**31 - 1, 2]
rows = np.arange(7 * 5).reshape(7, 5) + 1.0
found = [rows[0], 0 * rows[0], rows[6], 0 * rows[0], rows[3], 0 * rows[0], 0 * rows[0], rows[2]]
outside = Golden(
    Workload(tokens=8, vocabulary=7, cols=5), {"id": odd_ids, "table": rows}, {"out": found}, source="calculated"
)
padded = Golden(
    Workload(tokens=3, vocabulary=7, cols=5, padding=2), {"id": [2, 3, 2], "table": rows},
    {"out": [0 * rows[0], rows[3], 0 * rows[0]]}, source="calculated: the padding id gives zeros",
)  # fmt: skip
skewed = Golden(
    Workload(tokens=500, vocabulary=100, cols=36),
    inputs={
        "id": lambda tokens: np.minimum(np.random.default_rng(2).zipf(1.2, tokens) - 1, 99),
        "table": lambda vocabulary, cols: np.random.default_rng(3).normal(size=(vocabulary, cols)),
    },
    expected={},
    source="ids that repeat, as words do",
)
odd_numbers = Golden(
    Workload(tokens=2, vocabulary=1, cols=4), {"id": 0, "table": [[np.nan, np.inf, 1e-45, -0.0]]},
    {"out": [[np.nan, np.inf, 1e-45, -0.0]] * 2}, source="a copy keeps everything",
)  # fmt: skip

spec = KernelSpec(
    entry="embedding_lookup<4, int>",
    arguments=(ids_of("int32"), table, out, *sizes),
    parameters={"padding": -1},
    rules=(
        Rule("padding to be -1 (none) or an id of the table", lambda padding, vocabulary: -1 <= padding < vocabulary),
    ),
    launch=launch_of("embedding_lookup"),
    reference=reference,
    tolerance=exact(),
    peers={
        "torch": torch_embedding,
        "cupy": lambda cupy, id, table: cupy.take(table, id, axis=0),
        "liger": Peer(liger_embedding, prepares=True),
    },
    bytes_moved=traffic,
    workloads={
        "S0": Workload(tokens=1024, vocabulary=32_000, cols=512),
        "S1": Workload(tokens=65_536, vocabulary=128_256, cols=4096),
        "S2": Workload(tokens=262_144, vocabulary=128_256, cols=4096),
    },
    edges=(
        *(Workload(tokens=t, vocabulary=9, cols=c) for t, c in ((0, 8), (1, 1), (7, 3), (5, 0), (33, 130), (3, 1028))),
        *(Workload(tokens=4, vocabulary=50, cols=c) for c in (257, 2052)),
        Workload(tokens=90, vocabulary=11, cols=12, padding=4),
    ),
    golden=(outside, padded, skewed, odd_numbers),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "i64": Variant(
            "64-bit ids",
            arguments=(ids_of("int64"), table, out, *sizes),
            launch=launch_of("embedding_lookup", "long long"),
            peers={"torch": torch_embedding, "liger": Peer(liger_embedding, prepares=True)},
            bytes_moved=lambda tokens, cols: traffic(tokens, cols, id_bytes=8),
            golden=(
                Golden(
                    Workload(tokens=4, vocabulary=7, cols=5),
                    {"id": [2**32 + 1, -(2**40), 5, 1], "table": rows},
                    {"out": [0 * rows[0], 0 * rows[0], rows[5], rows[1]]},
                    source="calculated: ids beyond 32 bits are no ids",
                ),
            ),
            only_labels=("S0", "S1"),
        ),
        "checked": Variant(
            "policy raise: the ids outside the table are counted",
            entry="embedding_lookup_checked<4, int>",
            arguments=(ids_of("int32"), table, out, Out("invalid", "1", dtype="int32"), *sizes),
            launch=launch_of("embedding_lookup_checked"),
            reference=reference_checked,
            bytes_moved=lambda tokens, cols: traffic(tokens, cols) + 8,
            golden=(
                Golden(outside.workload, outside.inputs, {"out": found, "invalid": 4}, source="calculated"),
                padded,
            ),
            only_labels=("S0", "S1"),
        ),
    },
)
