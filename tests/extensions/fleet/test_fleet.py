"""A fleet of worker processes with the null backend: kills, a slow worker, Ctrl-C and what a record of it holds."""

import os
import random
import signal
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.fleet import cluster
from prism_bench.extensions.fleet.catalogue_run import SECONDS, FleetRun
from prism_bench.extensions.fleet.cluster import parse
from prism_bench.extensions.fleet.dispatch import boards_of
from prism_bench.extensions.fleet.fleet import BoardClaim, Fleet, SeenWorker, opened
from prism_bench.io.files import INTERVAL
from prism_bench.measure import Criterion
from prism_bench.run import Settings

TOYS = Path(__file__).parents[2] / "toys"
QUICK = {metric: Criterion(min_samples=3, max_samples=3) for metric in ("cold_time", "hot_time", "wall_time")}
SETTINGS = Settings(processes=2, criteria=QUICK, timeout=60.0)


@pytest.fixture(scope="module")
def fleet():
    """A fleet of two workers of this host."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TOYS.parent.parent))
        patch.delenv(SCRIPT, raising=False)
        with opened(parse("local", 2), needs_gpu=False) as found:
            yield found


@pytest.fixture
def measure(fleet, monkeypatch):
    """A function that runs the toys on the fleet, a job for each kernel, with what is called on the way."""
    monkeypatch.setenv(SECONDS, "0")
    monkeypatch.setenv(INTERVAL, "0")
    catalogue = discover(TOYS)

    def run(report=lambda _: None, keep=lambda _: None, earlier=()):
        boards, remarks = boards_of(fleet, "null", catalogue.folder)
        assert [] == remarks
        cases = catalogue.cases(labels=("S0",))
        job = FleetRun(fleet, boards, catalogue, "null", cases, SETTINGS, earlier=earlier)
        return job.run(report, keep)

    return run


def kernels(record):
    return sorted(kernel for part in record.parts or ({"kernels": ()},) for kernel in part["kernels"])


def require_whole(record):
    """Require that every case was measured in all processes, and each kernel on one board."""
    assert record.complete
    timed = [case for case in record.cases if case.label == "S0"]
    assert {"double[n=1000]", "double:by_adding[n=1000]", "triple[n=1000]", "nothing[blocks=1]"} == {
        c.name for c in timed
    }
    assert {"ok"} == {case.status for case in record.cases}
    assert {2} == {len(one.processes) for case in timed for one in case.measurements}
    assert not record.parts or ["double", "triple"] == kernels(record)


def killing(fleet, seed):
    """Return a function for progress that kills two workers, at times and of boards by chance, while they measure."""
    chance, left = random.Random(seed), [2]
    seen = set()

    def report(progress):
        for board in progress.boards:
            began = (board.title, board.line) not in seen and board.line not in ("waits", "starts") and not board.lost
            seen.add((board.title, board.line))
            if began and left[0] and chance.random() < 0.5:
                left[0] -= 1
                kill(fleet, board.title)
        if progress.done == progress.total - 1 and left[0]:
            busy = next(
                (one.title for one in progress.boards if not one.lost and one.line not in ("waits", "starts")), ""
            )
            if busy:
                left[0] -= 1
                kill(fleet, busy)

    return report, left


def kill(fleet, title):
    """Kill the worker process of a board: what it measures ends with it."""
    processes = dict(fleet._client.run(named_process, on_error="ignore").values())
    if title.split()[-1] in processes:
        os.kill(processes[title.split()[-1]], signal.SIGKILL)


def named_process(dask_worker):
    """Return the name of a worker and its process, in that worker."""
    return str(dask_worker.name), os.getpid()


@pytest.mark.parametrize("seed", [1])
def test_workers_killed_twice_cost_nothing_but_what_was_under_way(fleet, measure, seed):
    report, left = killing(fleet, seed)
    versions = []
    record = measure(report, versions.append)
    assert [0] == left
    require_whole(record)
    assert versions and all(not version.complete for version in versions)


def test_one_board_measures_the_ceilings_and_all_the_anchors(measure, monkeypatch):
    """As on GPUs: `triple` takes the part of a ceiling that is no anchor."""
    toys = discover(TOYS)
    ceilings = [toys.anywhere(name) for name in ("nothing[blocks=1]", "triple[n=1000]")]
    monkeypatch.setattr(FleetRun, "_ceilings", lambda self: ceilings)
    monkeypatch.setattr(FleetRun, "_anchors", lambda self: ceilings[:1])
    record = measure()
    assert record.complete
    boards = len(record.parts) or 1
    samples = {case.name: case.measurement("cold_time").processes for case in record.cases if case.label == "S0"}
    assert {"nothing[blocks=1]": 2 * boards, "triple[n=1000]": 2} == {
        name: len(samples[name]) for name in ("nothing[blocks=1]", "triple[n=1000]")
    }


def test_an_interrupt_keeps_what_was_measured(measure):
    def report(progress):
        if progress.done:
            raise KeyboardInterrupt

    record = measure(report)
    assert not record.complete
    assert record.cases


def test_hosts_and_firmware_of_boards_may_differ_and_settings_leave_a_board_out(fleet, monkeypatch):
    answers = fleet.answers
    fleet._client.wait_for_workers(2, timeout=60)  # an earlier test may have killed one

    def differently(claims, call, work):
        first, second = answers(claims, call, work)
        for place, (one, watts) in enumerate(((first, 700.0), (second, 500.0))):
            one["facts"] |= {"uuid": f"GPU-{place}", "board": {"host": f"host {place}", "vbios": f"96.{place}"}}
            one["facts"]["board"] |= {"power_limit": watts} if limited else {}
        return [first, second]

    monkeypatch.setattr(fleet, "answers", differently)
    limited = False
    boards, remarks = boards_of(fleet, "null", TOYS)
    assert (["GPU-0", "GPU-1"], []) == ([board.key for board in boards], remarks)
    limited = True
    (only,), (remark,) = boards_of(fleet, "null", TOYS)
    assert "GPU-0" == only.key and "power limit 500 W, not 700 W" in remark


def test_workers_with_other_files_than_each_other_or_the_command_are_refused(fleet, monkeypatch):
    answers = fleet.answers
    fleet._client.wait_for_workers(2, timeout=60)
    changed = {}

    def differently(claims, call, work):
        found = answers(claims, call, work)
        for place, files in changed.items():
            found[place]["files"] |= files
        return found

    monkeypatch.setattr(fleet, "answers", differently)
    changed[1] = {"prism-bench": "9.9", "prism-bench's code": "abc"}
    with pytest.raises(
        UsageError, match=r"(?s)the workers of the fleet differ.*\n  prism-bench: .*9\.9 on .*code: .*abc"
    ):
        boards_of(fleet, "null", TOYS)
    changed |= {0: {"catalogue": "abc"}, 1: {"catalogue": "abc"}}
    with pytest.raises(UsageError, match=r"(?s)other files than this command.*catalogue: \w+ here; abc on all workers"):
        boards_of(fleet, "null", TOYS)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    with (
        pytest.raises(BackendUnavailable, match="no scheduler answers at tcp://127.0.0.1:1 "),
        opened(parse("tcp://127.0.0.1:1"), needs_gpu=False),
    ):
        pass


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4, ""),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ""),
        (bytes(1000), ""),
        (b"", "(it is silent for 0.5 s|.*[Tt]imed out)"),
    ],
    ids=["HTTP", "SSH", "zeros", "nothing"],
)
def test_a_port_where_something_else_answers_is_named(monkeypatch, foreign_port, answer, reason):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 10 if answer else 0.5)
    address = f"tcp://127.0.0.1:{foreign_port(answer)}"
    with pytest.raises(BackendUnavailable, match=rf"no scheduler answers at {address} \({reason}"):
        with opened(parse(address), needs_gpu=False):
            pass


def test_a_worker_is_no_scheduler(fleet):
    fleet._client.wait_for_workers(1, timeout=60)  # an earlier test may have killed one
    address = min(fleet.addresses())
    with pytest.raises(BackendUnavailable, match=rf"no scheduler answers at {address} \(a Worker of Dask is there"):
        with opened(parse(address), needs_gpu=False):
            pass


@pytest.mark.parametrize(
    ("text", "reason"), [("raise RuntimeError('no driver')", "no driver"), ("import os; os._exit(3)", "Nanny")]
)
def test_a_worker_that_dies_while_it_starts_is_an_error_with_the_reason(monkeypatch, tmp_path, text, reason):
    import distributed

    (tmp_path / "dies.py").write_text(text)
    start = distributed.LocalCluster
    dies = lambda **options: start(**{**options, "preload": [str(tmp_path / "dies.py")]})  # noqa: E731
    monkeypatch.setattr(distributed, "LocalCluster", dies)
    with pytest.raises(BackendUnavailable, match=f"workers of --fleet local did not start .*{reason}"):
        with opened(parse("local", 1), needs_gpu=False):
            pass


class LostClient:
    """A client of Dask whose scheduler is gone once `lost` is set."""

    lost = False

    def __getattr__(self, name):
        def call(*arguments, **options):
            if self.lost:
                raise RuntimeError("Client is closed")

        return call


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda lost: lost.addresses(), "does not answer any more"),
        (lambda lost: lost.wait(), "was lost before it had a worker"),
        (lambda lost: lost.seen(["tcp://127.0.0.1:1"]), "cannot be asked what they are"),
        (
            lambda lost: lost.submit(BoardClaim(SeenWorker("a", "host", "a", (), ()), None, ()), "a:b", {}),
            "takes no job",
        ),
    ],
)
def test_every_use_of_a_scheduler_that_is_gone_is_an_error_of_the_machine(use, words):
    client = LostClient()
    lost = Fleet(client)
    client.lost = True
    with pytest.raises(BackendUnavailable, match=f"{words}.*: RuntimeError: Client is closed"):
        use(lost)
    lost.stop()  # an interrupt then still keeps what was measured
    with pytest.raises(BackendUnavailable, match="takes no messages"):
        Fleet(client)


def test_a_gpu_is_needed_where_the_backend_has_one():
    with pytest.raises(BackendUnavailable, match="no GPU of this host for --fleet local"):
        with opened(parse("local"), needs_gpu=True):
            pass
