"""The executor, on the emulator and on a GPU: items are served, refused, given up, moved, never lost silently."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from prism_bench.errors import BackendUnavailable, ItemFailed, QueueFull, UsageError
from prism_bench.extensions.persistent import FORMS, LAUNCHES, PERSISTENT, Executor, QueueSettings
from tests.extensions.persistent.toys import BROKEN, COMPLAINING, DOUBLED, ENDLESS, SERVED, TURNED, N

ZERO, ONE = np.zeros(1, np.float32), np.ones(1, np.float32)
REPLACED = 60.0  # seconds in which another worker must be there: a device may be slow to let the first one go


@pytest.fixture(params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def opened(request):
    """A function that opens an executor on each backend in turn."""

    def open_one(programs, form=PERSISTENT, **settings):
        executor = Executor(programs, request.param, QueueSettings(form=form, source=SERVED, **settings))
        assert (form, None) == (executor.form, executor.reason)
        return executor

    return open_one


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def until_an_incident(executor, seconds=REPLACED):
    """Return the first incident of the watchdog."""
    deadline = time.monotonic() + seconds
    while not executor.incidents and time.monotonic() < deadline:
        time.sleep(0.01)
    return executor.incidents[0]


def test_items_are_served_in_order_and_arrays_stay_between_them(opened, form):
    x, z = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    with opened({"empty": None, "turned": TURNED}, form) as executor:
        executor.write("turned", "x", x)
        executor.write("turned", "z", z)
        for item in [executor.submit(name) for name in ("turned", "empty", "turned", "turned")]:
            item.result(10)
        np.testing.assert_array_equal(1 + 3 * 2 * x[::-1], executor.read("turned", "z"))
        assert form == executor.form
        assert [] == executor.incidents
        assert executor.reason is None


def test_more_items_than_slots_go_round_the_ring(opened, form):
    with opened({"empty": None, "doubled": DOUBLED}, form, slots=4, patience=10) as executor:
        items = [executor.submit("empty") for _ in range(50)]
        for item in items:
            item.result(10)
        assert list(range(1, 51)) == [item.ticket for item in items]


def test_any_thread_may_submit(opened):
    with opened({"empty": None}, slots=8, patience=20) as executor:

        def ask(_):
            item = executor.submit("empty")
            item.result(REPLACED)
            return item.ticket

        with ThreadPoolExecutor(4) as threads:
            tickets = list(threads.map(ask, range(100)))
    assert list(range(1, 101)) == sorted(tickets)


def test_an_items_error_is_its_own(opened):
    """The complaining kernel reports its code to the queue kernel; a launch by the host has no such report."""
    with opened({"complain": COMPLAINING, "empty": None}, PERSISTENT) as executor:
        bad, good = executor.submit("complain"), executor.submit("empty")
        good.result(10)
        with pytest.raises(ItemFailed, match=r"item 1 \(complain\): the kernel gave error 7"):
            bad.result(10)


def test_full_queue_refuses_new_items_and_keeps_its_items(opened):
    with opened({"endless": ENDLESS}, slots=2, timeout=60, patience=0.05) as executor:
        executor.write("endless", "zero", ZERO)
        items = [executor.submit("endless") for _ in range(2)]
        with pytest.raises(QueueFull, match="all 2 slots of the queue are taken, and none became free within 0.05 s"):
            executor.submit("endless")
        executor._service.write("endless", "zero", ONE)
        for item in items:
            item.result(10)


def test_result_times_out_and_can_be_waited_for_again(opened):
    with opened({"endless": ENDLESS}, timeout=60) as executor:
        executor.write("endless", "zero", ZERO)
        item = executor.submit("endless")
        with pytest.raises(TimeoutError, match=r"item 1 \(endless\) is not served within 0.01 s"):
            item.result(0.01)
        executor._service.write("endless", "zero", ONE)
        item.result(10)
        assert item.done()


def test_an_endless_item_is_given_up_and_the_others_are_served_by_launches(opened):
    x = np.arange(N, dtype=np.float32)
    with opened({"endless": ENDLESS, "doubled": DOUBLED}, timeout=1.0) as executor:
        executor.write("endless", "zero", ZERO)
        executor.write("doubled", "x", x)
        before = executor.pid
        stuck, waiting = executor.submit("endless"), executor.submit("doubled")
        with pytest.raises(ItemFailed, match="given up: no answer within 1 s; the worker was replaced"):
            stuck.result(REPLACED)
        waiting.result(REPLACED)
        np.testing.assert_array_equal(2 * x, executor.read("doubled", "y"))
        assert LAUNCHES == executor.form
        assert before != executor.pid
        assert [((1, "endless"), 1)] == [(incident.item, incident.moved) for incident in executor.incidents]
        assert "no answer within 1 s" == executor.reason


def test_a_kernel_that_breaks_down_is_reported_and_the_others_are_served(opened):
    """As after a device's reset: every later call of the worker fails, so that it ends."""
    with opened({"broken": BROKEN, "empty": None}, timeout=5.0) as executor:
        broken, waiting = executor.submit("broken"), executor.submit("empty")
        with pytest.raises(ItemFailed, match="given up: the worker process ended .*the queue kernel ended"):
            broken.result(REPLACED)
        waiting.result(REPLACED)
        assert LAUNCHES == executor.form


def test_an_endless_launch_is_given_up_too(opened):
    with opened({"endless": ENDLESS, "empty": None}, LAUNCHES, timeout=1.0) as executor:
        executor.write("endless", "zero", ZERO)
        stuck, waiting = executor.submit("endless"), executor.submit("empty")
        with pytest.raises(ItemFailed, match="given up: no answer within 1 s"):
            stuck.result(REPLACED)
        waiting.result(REPLACED)


def test_a_killed_worker_is_replaced_and_its_item_reported(opened, form):
    """The device may hold the killed process for seconds; the watchdog still notices its end."""
    with opened({"endless": ENDLESS, "doubled": DOUBLED}, form, timeout=REPLACED / 2) as executor:
        executor.write("endless", "zero", ZERO)
        lost, waiting = executor.submit("endless"), executor.submit("doubled")
        os.kill(executor.pid, signal.SIGKILL)
        with pytest.raises(ItemFailed, match=r"given up: the worker process ended \(killed by signal 9\)"):
            lost.result(REPLACED)
        waiting.result(REPLACED)
        executor.submit("doubled").result(REPLACED)
        assert 1 == len(executor.incidents)


def test_an_idle_worker_that_is_killed_loses_nothing(opened):
    with opened({"empty": None}, timeout=0.5) as executor:
        executor.submit("empty").result(10)
        os.kill(executor.pid, signal.SIGKILL)
        incident = until_an_incident(executor)
        executor.submit("empty").result(REPLACED)
        assert (None, 0) == (incident.item, incident.moved)


def test_the_queue_kernel_runs_again_after_an_endless_item(opened):
    """A killed worker leaves the device usable."""
    with opened({"endless": ENDLESS}, timeout=0.5) as executor:
        executor.write("endless", "zero", ZERO)
        with pytest.raises(ItemFailed):
            executor.submit("endless").result(REPLACED)
    x = np.arange(N, dtype=np.float32)
    with opened({"doubled": DOUBLED}) as executor:
        executor.write("doubled", "x", x)
        executor.submit("doubled").result(REPLACED)
        np.testing.assert_array_equal(2 * x, executor.read("doubled", "y"))


def test_stopped_queue_kernel_is_noticed_by_its_pulse():
    """On a GPU the kernel's pulse continues when its process is stopped; on the emulator the process has the pulse."""
    with Executor({"empty": None}, "emulator", QueueSettings(timeout=0.5)) as executor:
        os.kill(executor.pid, signal.SIGSTOP)
        assert until_an_incident(executor).reason.startswith("its pulse has stopped for")
        executor.submit("empty").result(REPLACED)


def test_close_serves_submitted_items(opened, form):
    executor = opened({"empty": None}, form)
    items = [executor.submit("empty") for _ in range(10)]
    executor.close()
    for item in items:
        item.result(0.1)
    with pytest.raises(BackendUnavailable, match="the executor serves no more: it was closed"):
        executor.submit("empty")
    executor.close()


def test_close_fails_endless_items(opened):
    executor = opened({"endless": ENDLESS}, timeout=0.5)
    executor._watchdog.stop()
    executor.write("endless", "zero", ZERO)
    items = [executor.submit("endless") for _ in range(2)]
    executor.close()
    for item in items:
        with pytest.raises(ItemFailed, match="the executor was closed before it was served"):
            item.result(0.1)


def test_names_and_shapes_are_checked_before_anything_is_sent(opened):
    with opened({"doubled": DOUBLED}) as executor:
        with pytest.raises(UsageError, match="unknown program 'doubeld'; did you mean doubled"):
            executor.submit("doubeld")
        with pytest.raises(UsageError, match="unknown array of doubled 'w'"):
            executor.read("doubled", "w")
        with pytest.raises(UsageError, match=r"doubled: x has shape \(1000,\), not \(2, 2\)"):
            executor.write("doubled", "x", np.zeros((2, 2)))


def test_a_backend_without_a_queue_is_refused():
    with pytest.raises(UsageError, match="backend 'null' serves no queue; cuda and emulator do"):
        Executor({"empty": None}, "null")
