"""The plugin that asv loads: its publisher runs last, when asv has copied its page and written its graphs."""

import atexit
from pathlib import Path

from asv.console import log
from asv.publishing import OutputPublisher
from asv.util import UserError

from prism_bench.errors import PrismBenchError


class PrismBench(OutputPublisher):
    """Budgets, steps and roofline of the run records that are next to asv's results, in `<results_dir>/../runs`."""

    name = "prism-bench"
    button_label = "Show budgets, steps and roofline"
    description = "Judge the newest run records"

    @classmethod
    def publish(cls, conf, repo, benchmarks, graphs, revisions):
        from prism_bench.report.asv.build import build
        from prism_bench.report.asv.local import write_twins

        site = Path(conf.html_dir)
        try:
            build(site, Path(conf.results_dir).parent / "runs", log.warning)
        except PrismBenchError as error:
            raise UserError(str(error)) from error
        # asv writes its index after the last publisher: only at the end of the program is everything there.
        atexit.register(write_twins, site)
