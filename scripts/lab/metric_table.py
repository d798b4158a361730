"""Table of the counters that each chip has, prism_bench/profilers/metric_support.csv, from NVIDIA's library.

The library is the one that ncu and CUPTI share (libnvperf_host.so); it answers chip by chip and needs no GPU. The names
are those in the table already, those of the metric set, and the arguments; a name that no chip has stays, as an answer.

    pip install nvidia-cuda-cupti && scripts/metric_table --library .../libnvperf_host.so [NAME...]
"""

import argparse
import csv
import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint8, c_void_p, sizeof
from pathlib import Path
from typing import Any

from lab import REPOSITORY
from prism_bench.profilers.metrics import LOGICAL, REPLACED, base, computed_by_tool
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import table_text

# One chip per compute capability: those of one capability have the same compute counters.
CHIPS = {"GV100": "7.0", "TU102": "7.5", "GA100": "8.0", "GA102": "8.6", "GA10B": "8.7", "AD102": "8.9", "GH100": "9.0",
         "GB100": "10.0", "GB110": "10.3", "GB10B": "11.0", "GB202": "12.0", "GB20B": "12.1",
         "GR100": "Rubin"}  # fmt: skip
KINDS = ("counter", "ratio", "throughput")


def parameters(*fields: tuple[str, Any]) -> type[ctypes.Structure]:
    """Return an NVPW parameter block with its own size and an empty private pointer in front, as a type."""
    return type("Parameters", (ctypes.Structure,), {"_fields_": [("size", c_size_t), ("private", c_void_p), *fields]})


Plain = parameters()
Chips = parameters(("names", POINTER(c_char_p)), ("count", c_size_t))
Scratch = parameters(("chip", c_char_p), ("available", c_void_p), ("bytes", c_size_t))
Evaluator = parameters(("scratch", c_void_p), ("bytes", c_size_t), ("chip", c_char_p), ("available", c_void_p),
                       ("data", c_void_p), ("data_bytes", c_size_t), ("evaluator", c_void_p))  # fmt: skip
Names = parameters(
    ("evaluator", c_void_p), ("kind", c_uint8), ("text", c_void_p), ("begins", POINTER(c_size_t)), ("count", c_size_t)
)


def call(library: ctypes.CDLL, name: str, layout: type[ctypes.Structure], **values: Any) -> Any:
    """Fill a block of that layout, call the function, and return the block; exit where the library refuses."""
    block = layout(sizeof(layout), None)
    for field, value in values.items():
        setattr(block, field, value)
    status = getattr(library, name)(byref(block))
    if status:
        sys.exit(f"metric_table: {name} answers {status}")
    return block


def counters_of(library: ctypes.CDLL, chip: str) -> dict[str, str]:
    """Return the chip's base names with their kinds."""
    needed = call(library, "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", Scratch, chip=chip.encode())
    scratch = (c_uint8 * needed.bytes)()
    evaluator = call(
        library,
        "NVPW_CUDA_MetricsEvaluator_Initialize",
        Evaluator,
        chip=chip.encode(),
        bytes=needed.bytes,
        scratch=ctypes.cast(scratch, c_void_p),
    ).evaluator
    found: dict[str, str] = {}
    for kind, word in enumerate(KINDS):
        names = call(library, "NVPW_MetricsEvaluator_GetMetricNames", Names, evaluator=evaluator, kind=kind)
        found |= {ctypes.string_at(names.text + names.begins[i]).decode(): word for i in range(names.count)}
    return found


def main() -> None:
    """Read the library and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, required=True, help="libnvperf_host.so, of nvidia-cuda-cupti or of ncu")
    parser.add_argument("--table", type=Path, default=REPOSITORY / "prism_bench" / "profilers" / "metric_support.csv")
    parser.add_argument("names", nargs="*", help="base names to add, such as sm__inst_executed_pipe_fp64")
    chosen = parser.parse_args()
    library = ctypes.CDLL(str(chosen.library))
    call(library, "NVPW_InitializeHost", Plain)
    answered = call(library, "NVPW_GetSupportedChipNames", Chips)
    present = {answered.names[i].decode() for i in range(answered.count)}
    # What the table has already stays, also of chips that this library no longer knows.
    header, *kept = csv.reader(chosen.table.read_text().splitlines()) if chosen.table.is_file() else [["metric"]]
    columns = {title.split("_")[0]: {row[0]: row[i] for row in kept} for i, title in enumerate(header) if i}
    columns |= {chip: counters_of(library, chip) for chip in CHIPS if chip in present}
    asked = {source for metric in LOGICAL.values() for source in metric.sources if not computed_by_tool(source)}
    wanted = {*(row[0] for row in kept), *map(base, asked), *REPLACED, *map(base, REPLACED.values()), *chosen.names}
    titles = [chip for chip in CHIPS if chip in columns]
    headers = {chip: f"{chip}_{CHIPS[chip]}" for chip in titles}
    rows = [
        {"metric": name, **{headers[chip]: columns[chip].get(name, "") for chip in titles}} for name in sorted(wanted)
    ]
    chosen.table.write_text(table_text(rows, ["metric", *headers.values()]))
    print(f"{chosen.table}: {count_text(len(titles), 'chip')}; {chosen.library.name} knows {len(present)}")


if __name__ == "__main__":
    main()
