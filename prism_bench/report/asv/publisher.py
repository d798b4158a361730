"""The plugin that asv loads: its publisher runs last, and it names the place for the progress of the suites."""

import atexit
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from asv.console import log
from asv.publishing import OutputPublisher
from asv.util import UserError

from prism_bench.errors import PrismBenchError

if TYPE_CHECKING:
    from asv.benchmarks import Benchmarks
    from asv.config import Config
    from asv.graph import GraphSet
    from asv.repo import Repo


# asv captures what its suites print until they end; they write their progress where asv prints errors.
os.environ.setdefault("PRISM_BENCH_ASV_PROGRESS", f"/proc/{os.getpid()}/fd/2")


class PrismBench(OutputPublisher):
    """Budgets, steps and roofline of the run records that are next to asv's results, in `<results_dir>/../runs`."""

    name = "prism-bench"
    button_label = "Show budgets, steps and roofline"
    description = "Judge the newest run records"

    @classmethod
    def publish(
        cls, conf: "Config", repo: "Repo", benchmarks: "Benchmarks", graphs: "GraphSet", revisions: Mapping[str, int]
    ) -> None:
        from prism_bench.report.asv.libraries import write_twins
        from prism_bench.report.asv.pages import build

        site = Path(conf.html_dir)
        try:
            build(site, Path(conf.results_dir).parent / "runs", log.warning)
        except PrismBenchError as error:
            raise UserError(str(error)) from error
        # asv writes its index after the last publisher: only at the end of the program is everything there.
        atexit.register(write_twins, site)
