"""`prism-bench exporter`: the monitor's values for Prometheus."""

from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.monitor import DeviceOption
from prism_bench.monitor.exporter import LOOPBACK, PORT

NAME = "exporter"


def command(
    device: DeviceOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen on this port; 0 takes a free one.")] = PORT,
    address: Annotated[str, typer.Option(help="Listen on this address; 0.0.0.0 serves other machines too.")] = LOOPBACK,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Sample once in this many seconds.")] = 1.0,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    duration: Annotated[float | None, typer.Option(min=0, help="End after this many seconds; default: never.")] = None,
) -> None:
    """Serve the monitor's values to Prometheus.

    Devices, kernels that run, and the newest record's times and budgets, under DCGM's names.
    """
    from prism_bench.monitor.alerts import RULES
    from prism_bench.monitor.exporter import MetricsCollector, serve
    from prism_bench.monitor.station import station
    from prism_bench.workflows.exported import exported

    with station(device, RULES, 1 / interval, once=False) as post:
        collector = MetricsCollector(post.sampler, post.executions, lambda: exported(runs, catalogue, options.remark))
        server, thread = serve(collector, port, address)
        options.line(f"serving http://{address}:{server.server_port}/metrics")
        try:
            for _ in post.moments(interval, duration):
                continue
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
