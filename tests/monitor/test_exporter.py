"""What Prometheus scrapes, read by Prometheus' own parser; and places that cannot be had."""

import socket
from urllib.request import urlopen

import pytest

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families  # noqa: E402

from prism_bench.errors import UsageError  # noqa: E402
from prism_bench.monitor.executions import Executions  # noqa: E402
from prism_bench.monitor.exporter import MetricsCollector, Newest, serve  # noqa: E402
from prism_bench.monitor.sampler import sampling  # noqa: E402

RECORD = Newest(
    seconds=[("relu[n=8]", "cold_time", 2e-6)],
    joules=[("relu[n=8]", 0.25)],
    budgets=[("relu[n=8]", "registers", False)],
    unreadable=["nvidia-h200/broken.json.gz"],
)


@pytest.fixture
def scraped(gpu):
    """A function that serves the state and gives what a scrape reads: samples by (name, chosen labels)."""
    executions = Executions()
    for seconds in (2e-6, 4e-6, None):
        executions.record("relu", seconds)
    gpu.add(uuid="GPU-99999999", temperature=60, power=None)

    def scrape(*labels):
        with sampling(lambda found: found, hertz=1, full=True, threaded=False) as sampler:
            sampler.beat()
            server, thread = serve(MetricsCollector(sampler, executions, lambda: RECORD), 0)
            try:
                text = urlopen(f"http://127.0.0.1:{server.server_port}/metrics").read().decode()
            finally:
                server.shutdown()
                server.server_close()
                thread.join()
        families = text_string_to_metric_families(text)
        samples = [one for family in families for one in family.samples]
        return {(one.name, *(one.labels.get(label) for label in labels)): one.value for one in samples}

    return scrape


def test_devices_are_told_under_dcgms_names_and_units(scraped):
    found = scraped("gpu")
    assert {
        ("DCGM_FI_DEV_GPU_UTIL", "0"): 35.0, ("DCGM_FI_DEV_SM_CLOCK", "0"): 1980.0, ("DCGM_FI_DEV_GPU_TEMP", "1"): 60.0,
        ("DCGM_FI_DEV_POWER_USAGE", "0"): 300.0, ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "0"): 5_000_000.0,
        ("DCGM_FI_DEV_FB_USED", "0"): pytest.approx(30e9 / 2**20), ("prism_bench_device_lost", "0"): 0.0,
    }.items() <= found.items()  # fmt: skip


def test_labels_are_dcgms(scraped):
    assert ("DCGM_FI_DEV_GPU_TEMP", "1", "GPU-99999999", "nvidia1", "NVIDIA H200") in scraped(
        "gpu", "UUID", "device", "modelName"
    )


def test_what_is_not_offered_is_absent(scraped):
    found = scraped("gpu")
    assert ("DCGM_FI_DEV_POWER_USAGE_INSTANT", "0") in found
    assert ("DCGM_FI_DEV_POWER_USAGE_INSTANT", "1") not in found
    assert ("DCGM_FI_PROF_SM_ACTIVE", "0") not in found
    assert ("DCGM_FI_DEV_XID_ERRORS", "0") not in found


def test_a_lost_device_has_nothing_but_that(scraped, gpu):
    gpu.set(1, sm_clock="!15")
    found = scraped("gpu")
    assert {"prism_bench_device_lost"} == {name for name, device in found if device == "1"}
    assert 1.0 == found["prism_bench_device_lost", "1"]


def test_kernels_and_the_newest_record_are_told_under_our_prefix(scraped):
    found = scraped("kernel", "result", "statistic", "case", "metric")
    assert 1.0 == scraped("file")["prism_bench_record_unreadable", "nvidia-h200/broken.json.gz"]
    assert {
        ("prism_bench_kernel_executions_total", "relu", "success", None, None, None): 2.0,
        ("prism_bench_kernel_executions_total", "relu", "failure", None, None, None): 1.0,
        ("prism_bench_kernel_seconds", "relu", None, "mean", None, None): pytest.approx(3e-6),
        ("prism_bench_case_seconds", None, None, None, "relu[n=8]", "cold_time"): 2e-6,
        ("prism_bench_case_joules", None, None, None, "relu[n=8]", None): 0.25,
        ("prism_bench_budget_met", None, None, None, "relu[n=8]", "registers"): 0.0,
    }.items() <= found.items()


def test_a_taken_port_and_a_strange_address_are_one_clear_line(gpu):
    collector = MetricsCollector(None, Executions())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port} is taken by another program"):
            serve(collector, port)
    with pytest.raises(UsageError, match="cannot be used"):
        serve(collector, 0, "no.such.host.invalid")
