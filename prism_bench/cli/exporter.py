"""`prism-bench exporter`: the same for Prometheus."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench import options
from prism_bench.cli.monitor import DeviceOption
from prism_bench.monitor.exporter import LOOPBACK, PORT

if TYPE_CHECKING:
    from prism_bench.monitor.exporter import Told

NAME = "exporter"
_MOST_TRIED = 64  # records, the newest first, until one can be read


def command(
    device: DeviceOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one")] = PORT,
    address: Annotated[str, typer.Option(help="0.0.0.0 lets other machines ask too")] = LOOPBACK,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="seconds between two looks at the devices")] = 1.0,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    duration: Annotated[float | None, typer.Option(min=0, help="seconds until it ends; for ever without it")] = None,
) -> None:
    """Serve what the monitor sees to Prometheus.

    Devices, kernels that run, and the newest record's times and budgets, under DCGM's names.
    """
    from prism_bench.monitor.alerts import RULES
    from prism_bench.monitor.exporter import Collector, serve
    from prism_bench.monitor.station import station

    with station(device, RULES, 1 / interval, once=False) as post:
        collector = Collector(post.sampler, post.executions, lambda: told_by_records(runs, catalogue))
        server, thread = serve(collector, port, address)
        options.out().print(f"serving http://{address}:{server.server_port}/metrics", highlight=False, soft_wrap=True)
        try:
            for _ in post.moments(interval, duration):
                continue
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def told_by_records(runs: Path, folder: Path | None) -> "Told":
    """What the newest readable record says, and which newer ones cannot be read; nothing where there is no record."""
    from prism_bench import store
    from prism_bench.monitor.exporter import Told

    unreadable: list[str] = []
    for path in reversed(store.records_in(runs)[-_MOST_TRIED:]):
        told = _told_by(path, _stamp(path), folder)
        if told:
            return replace(told, unreadable=tuple(unreadable))
        unreadable.append(f"{path.parent.name}/{path.name}")
    return Told(unreadable=tuple(unreadable))


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when a run that is under way writes its record again."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=_MOST_TRIED)
def _told_by(path: Path, stamp: tuple[int, int], folder: Path | None) -> "Told | None":
    """What the record says, None where it cannot be read; it is read when it is new, and not at every scrape."""
    from prism_bench import store
    from prism_bench.analysis.reading import read
    from prism_bench.errors import ResultsError
    from prism_bench.monitor.exporter import Told

    try:
        reading = read(store.read(path), options.open_catalogue(folder))
    except ResultsError as error:
        options.err().print(f"not served: {error}", highlight=False, soft_wrap=True)
        return None
    timed = [(case.name, one) for case in reading.cases for one in case.measurements if one.subject == "kernel"]
    valid = [(name, one) for name, one in timed if one.valid]
    return Told(
        seconds=[(name, one.metric, one.median) for name, one in valid if one.median is not None],
        joules=[(name, one.energy.joules) for name, one in valid if one.energy and one.energy.joules is not None],
        budgets=[
            (one.case, one.budget.metric, one.verdict == "met")
            for one in reading.budgets
            if one.verdict in ("met", "missed")
        ],
    )
