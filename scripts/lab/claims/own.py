"""Claims that a repository publishes: made and replayed in one call on a GPU machine, and called stale with their code.

    scripts/claims [--record RECORD] [--only make|replay|agreement] [--current] [--time-limit SECONDS]

`reports/claims/list.toml` names them. A claim that is there is not made again while its files are the catalogue's, and
an answer of the same board about its digest is kept, so that a call that was cut short goes on where it ended.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lab.claims.agreement import agreement_lines
from lab.claims.own_files import FOLDER
from lab.claims.own_making import OwnMaking
from lab.claims.own_replays import OwnReplays
from lab.claims.own_run import OwnRun
from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.extensions.claims.making import PROCESSES
from prism_bench.record import store


def main(words: Sequence[str] | None = None) -> int:
    """Make and replay the claims; return 1 where one is not reproduced."""
    chosen = _parser().parse_args(words)
    if chosen.only == "agreement":
        print(*agreement_lines(chosen.folder), sep="\n")
        return 0
    here = OwnRun(
        chosen.folder, discover(chosen.catalogue), open_backend(chosen.backend), chosen.processes, chosen.time_limit
    )
    record = store.read(chosen.record) if chosen.record else None
    for line in OwnMaking(here, record).make() if chosen.only != "replay" else ():
        print(line, flush=True)
    codes = [0]
    for line, code in OwnReplays(here, chosen.current).replay() if chosen.only != "make" else ():
        print(line, flush=True)
        codes.append(code)
    return int(1 in codes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="claims", description="Make and replay the claims of reports/claims.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"the folder of claims (default: {FOLDER})")
    parser.add_argument("--catalogue", type=Path, help="the catalogue (default: the bundled one)")
    parser.add_argument("--backend", default="cuda", help="the backend (default: cuda)")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"processes a side (default: {PROCESSES})")
    parser.add_argument("--record", type=Path, help="make claims of this record where its code is the catalogue's")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="begin nothing after these seconds")
    parser.add_argument("--current", action="store_true", help="replay only claims whose code is the catalogue's")
    parser.add_argument(
        "--only", choices=("make", "replay", "agreement"), help="do one part; `agreement` counts answers"
    )
    return parser
