"""A study that `DealtStudy` deals: a line for each item, with the GPU that it was given; the item `bad` fails."""

import argparse
import os
import sys
import time
from pathlib import Path

from lab.judge.dealt_study import add_part_options, claimed

from prism_bench.io.files import guarded
from prism_bench.workflows.compile_table import write_csv


@guarded
def main() -> int:
    """Write the table after each item."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", nargs="+")
    parser.add_argument("--output", type=Path)
    add_part_options(parser)
    parser.add_argument("--share", action="store_true", help="take items of other places, too")
    parser.add_argument("--pause", type=float, default=0.0)
    chosen, rows = parser.parse_args(), list[dict[str, str]]()
    for item in [*chosen.items, *(chosen.then if chosen.share else ())]:
        if not claimed(chosen.part, item):
            continue
        if item == "bad":
            print("it is bad", file=sys.stderr)
            return 2
        rows.append({"item": item, "gpu": os.environ["CUDA_VISIBLE_DEVICES"]})
        write_csv(rows, chosen.output)
        time.sleep(chosen.pause)
        end = time.monotonic() + 60
        while item == "waits" and len(list(chosen.part.iterdir())) < len(chosen.items) + len(chosen.then):
            assert time.monotonic() < end, "somebody begins all others"
            time.sleep(0.05)
    return 0


if __name__ == "__main__":
    sys.exit(main())
