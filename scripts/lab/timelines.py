"""Pictures of three kernels of the catalogue at work: copies of them with regions, recorded on a GPU.

scripts/timelines --output reports/timeline
"""

import argparse
import csv
import shutil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from lab import REPOSITORY
from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.extensions.timeline.picture import timeline_picture
from prism_bench.extensions.timeline.recording import Recording, record
from prism_bench.extensions.timeline.regions import rows

KERNELS = REPOSITORY / "kernels"
HEAD = "#include <prism_bench/regions.cuh>\n"
_PAIRS = 41
_COLUMNS = ("case", "device", "plain_s", "probed_s", "event_s", "region", "count", "share", "median_ns")

# Copies of kernels of the catalogue. For each: the folders or files to copy, and by file the lines after which, or for
# which, others come. A region in a loop of warpgroup instructions begins after a wait and ends after the next one.
PLACES = {
    "tensor_core_matmul": (
        ("tensor_core/tensor_core_matmul",),
        {
            "include/tensor_cores/streamed_product.cuh": {
                "            await_phase(ring.empty + 8 * place.stage, place.parity ^ 1);\n": (
                    '            PB_REGION_BEGIN(free, "wait for a stage");\n{line}            PB_REGION_END(free);\n'
                    '            PB_REGION("copy");\n'
                ),
                "        await_phase(ring.full + 8 * place.stage, place.parity);\n": (
                    '        PB_REGION_BEGIN(tiles, "wait for tiles");\n{line}        PB_REGION_END(tiles);\n'
                    '        PB_REGION("multiply");\n'
                ),
            }
        },
    ),
    "fused_attention_softmax": (
        ("fused/fused_attention_softmax",),
        {
            "include/attention/attention_streamed.cuh": {
                "                await_phase(key + stream.FREE, stream.parity ^ 1);\n": (
                    '                PB_REGION("copy");\n{line}'
                ),
                "        weigh(block);\n": (
                    '        PB_REGION_BEGIN(softmax, "exponentials");\n{line}        PB_REGION_END(softmax);\n'
                ),
            }
        },
    ),
    "active_inference_chain:full": (
        ("active_inference", "tensor"),
        {
            "active_inference/active_inference_chain.cu": {
                '#include "../tensor/axpby.cu"\n': HEAD + "{line}",
                "        T gradient;\n": '        PB_REGION("gradient");\n{line}',
                "    if (!last_block(arrived + tiles, tiles + 1)) return;\n": '{line}    PB_REGION("sum up");\n',
            }
        },
    ),
}  # fmt: skip


def copy(folder: Path, kernel: str) -> None:
    """Copy a kernel of PLACES into a catalogue, with its regions."""
    sources, places = PLACES[kernel]
    for name in sources:
        whole = KERNELS / name
        paths = whole.iterdir() if whole.is_dir() else (whole.with_suffix(".cu"), whole.with_suffix(".py"))
        for path in paths:
            to = folder / path.relative_to(KERNELS)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                shutil.copy(path, to)
    for name, lines in places.items():
        text = (KERNELS / name).read_text()
        for line, more in lines.items():
            assert line in text, f"{name} has no line {line.strip()}: place the region elsewhere"
            text = text.replace(line, more.replace("{line}", line))
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text.replace("#pragma once\n", f"#pragma once\n\n{HEAD}", 1))


def recorded(kernel: str, backend: str = "cuda") -> Recording:
    """Return the recording of a kernel of PLACES at S1."""
    with TemporaryDirectory() as folder:
        copy(Path(folder), kernel)
        (case,) = (
            case for case in discover(Path(folder)).cases([kernel], ["S1"]) if bool(case.variant) == (":" in kernel)
        )
        return record(open_backend(backend), case, _PAIRS)


def main() -> None:
    """Write a picture for each kernel, and a table of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "regions.csv").open("w", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(_COLUMNS)
        for kernel in PLACES:
            recording = recorded(kernel)
            (folder / f"{kernel.replace(':', '-')}.png").write_bytes(timeline_picture(recording))
            table.writerows(table_rows(recording))


def table_rows(recording: Recording) -> list[tuple[object, ...]]:
    """Return a row for each region of a recording."""
    cost = recording.cost
    seconds = (
        tuple(f"{each:.4g}" for each in (median(cost.plain), median(cost.probed), cost.per_event))
        if cost
        else ("", "", "")
    )
    return [
        (recording.case, recording.device, *seconds, row.name, row.count, f"{row.share:.3g}", f"{row.middle:.4g}")
        for row in rows(recording.timeline)
    ]
