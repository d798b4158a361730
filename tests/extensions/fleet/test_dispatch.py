"""Who gets what next, with workers that are lost, slow or refused: a fleet without processes."""

from collections import deque
from concurrent.futures import CancelledError, Future

import pytest
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.fleet import dispatch
from prism_bench.extensions.fleet.dispatch import MOST_LOSSES, BoardRefused, CaseGroup, Dispatcher, Schedule
from prism_bench.extensions.fleet.fleet import BoardClaim, FleetBoard, JobMessage, SeenWorker
from prism_bench.spec.case import Device


def board(name, address=None):
    claim = BoardClaim(SeenWorker(address or name, "host", name, (), ()), None, ())
    return FleetBoard(claim, {"uuid": name}, {}, {}, Device(), {})


def group(name):
    return CaseGroup((name,), (name,), 1.0)


class Scripted:
    """A fleet whose jobs end in the order of their start, after what `script` does with each job."""

    def __init__(self, *addresses, script=None):
        self.live, self._script, self._number = set(addresses), script or {}, 0
        self._arrived, self.started = deque(), []

    def addresses(self):
        return set(self.live)

    def submit(self, claim, call, work):
        self._number += 1
        future = Future()
        self.started.append((claim.worker.address, work["groups"]))
        action = self._script.get(self._number, lambda fleet, address: "done")(self, claim.worker.address)
        if action == "lost":
            self.live.discard(claim.worker.address)
        elif isinstance(action, Exception):
            future.set_exception(action)
        else:
            future.set_result(None)
        if action != "lost":
            result = (
                [] if isinstance(action, Exception) else [JobMessage(self._number, event={"result": work["groups"]})]
            )
            self._arrived += [JobMessage(self._number, event={}), *result, JobMessage(self._number, future=future)]
        return self._number, future

    def messages(self, seconds):
        return [self._arrived.popleft()] if self._arrived else []


class Kept:
    """What came of the groups."""

    call = "nothing:nothing"

    def __init__(self, refuses=()):
        self.results, self.given_up, self._refuses = [], [], refuses

    def order(self, board, groups):
        return {"groups": [one.kernels[0] for one in groups]}

    def event(self, board, groups, event, state):
        state.done += 1

    def done(self, board, groups, result):
        if board.key in self._refuses:
            raise BoardRefused("its disk is full")
        self.results += result

    def lost(self, board, groups):
        return list(groups)

    def give_up(self, board, group, reason):
        self.given_up.append((group.kernels[0], reason))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Look for lost workers whenever something could have happened."""
    monkeypatch.setattr(dispatch, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(dispatch, "REJOIN_SECONDS", 0.0)


def dispatched(fleet, work, groups, *, last=None, rejoined=lambda new, gone: []):
    boards = [board(address) for address in sorted(fleet.live)]
    schedule = Schedule([group(name) for name in groups], [one.key for one in boards], last or {})
    dispatcher = Dispatcher(fleet, boards, schedule, work, 0.0, rejoined)
    dispatcher.run()
    return dispatcher


def test_each_group_is_measured_once():
    fleet, work = Scripted("a", "b", "c"), Kept()
    dispatched(fleet, work, "uvwxyz")
    assert sorted("uvwxyz") == sorted(work.results)
    assert {"a", "b", "c"} == {address for address, _ in fleet.started}


def test_a_lost_workers_groups_are_planned_anew_on_another():
    fleet, work = Scripted("a", "b", script={1: lambda *_: "lost"}), Kept()
    dispatcher = dispatched(fleet, work, "uvw", last={"u": "a", "v": "a", "w": "b"})
    assert sorted("uvw") == sorted(work.results)
    assert {"b"} == {address for address, groups in fleet.started[1:]}
    assert [] == work.given_up
    assert dispatcher.states["a"].lost and not dispatcher.states["b"].lost


def test_a_lost_worker_is_named_in_the_view_and_on_standard_error(capsys):
    fleet, lines = Scripted("tcp://host:1", "tcp://host:2", script={1: lambda *_: "lost"}), set()
    boards = [board("0", "tcp://host:1"), board("1", "tcp://host:2")]
    schedule = Schedule([group(name) for name in "uv"], ["0", "1"], {})
    report = lambda states: lines.update(f"{one.title}: {one.line}" for one in states)  # noqa: E731
    Dispatcher(fleet, boards, schedule, Kept(), 0.0, lambda new, gone: [], report).run()
    assert "host 0: its worker 0 at tcp://host:1 is lost" in lines
    assert "host 0 lost its worker 0 at tcp://host:1; its cases are planned anew" in capsys.readouterr().err


@pytest.mark.parametrize("error", [CommClosedError("gone"), FutureCancelledError("job", "lost"), CancelledError()])
def test_every_error_of_dask_is_a_lost_worker(error):
    fleet, work = Scripted("a", "b", script={1: lambda *_: error}), Kept()
    dispatcher = dispatched(fleet, work, "uv")
    assert sorted("uv") == sorted(work.results)
    assert dispatcher.states["a"].lost


def test_an_error_that_cannot_be_had_from_a_lost_scheduler_is_a_lost_worker():
    class Unanswered(Future):
        def exception(self, timeout=None):
            raise CommClosedError("the scheduler is gone")

    fleet, work = Scripted("a", "b"), Kept()

    def messages(seconds, inner=fleet.messages):
        (message,) = inner(seconds) or [None]
        if message and message.number == 1:
            return [JobMessage(1, future=Unanswered())] if message.future is not None else []
        return [message] if message else []

    fleet.messages = messages
    assert dispatched(fleet, work, "uv").states["a"].lost
    assert sorted("uv") == sorted(work.results)


def test_a_run_that_loses_its_scheduler_keeps_its_results_and_gives_the_reason(capsys):
    fleet = Scripted("a")
    dispatcher = Dispatcher(fleet, [board("a")], Schedule([group("u")], ["a"], {}), Kept(), 0.0, lambda new, gone: [])

    def gone():
        raise BackendUnavailable("the scheduler of the fleet does not answer any more")

    fleet.addresses, fleet.messages = gone, lambda seconds: []
    assert not dispatcher.run_or_stop(lambda: True)
    assert "what was measured: the scheduler of the fleet does not answer any more" in capsys.readouterr().err
    with pytest.raises(BackendUnavailable, match="does not answer any more"):
        dispatcher.run_or_stop(lambda: False)


def test_a_worker_that_comes_back_measures_again():
    def comes_back(fleet, address):
        fleet.live.add("a2")
        return "lost"

    asked = []

    def rejoined(new, gone):
        asked.append((new, [one.key for one in gone]))
        return [board("a", address="a2")]

    fleet, work = Scripted("a", script={1: comes_back}), Kept()
    dispatched(fleet, work, "uv", rejoined=rejoined)
    assert sorted("uv") == sorted(work.results)
    assert [({"a2"}, ["a"])] == asked
    assert "a2" == fleet.started[-1][0]


def test_a_group_at_which_workers_are_lost_again_and_again_is_given_up():
    lost = {number: lambda *_: "lost" for number in (1, 3, 5)}  # the first group is the one that is planned anew
    fleet, work = Scripted("a", "b", "c", "d"), Kept()
    fleet._script = {}

    def submit(claim, call, order, inner=fleet.submit):
        fleet._script = {fleet._number + 1: lost[1]} if order["groups"] == ["u"] else {}
        return inner(claim, call, order)

    fleet.submit = submit
    dispatched(fleet, work, "uvw")
    assert sorted("vw") == sorted(work.results)
    ((name, reason),) = work.given_up
    assert "u" == name and reason.startswith(f"{MOST_LOSSES} workers of the fleet were lost")


def test_a_slow_worker_keeps_the_others_from_nothing():
    fleet, work = Scripted("a", "b"), Kept()

    def messages(seconds, inner=fleet.messages):
        fleet._arrived = deque(sorted(fleet._arrived, key=lambda message: message.number == 1))  # the first job is slow
        return inner(seconds)

    fleet.messages = messages
    dispatched(fleet, work, "uvwxyz")
    assert sorted("uvwxyz") == sorted(work.results)
    assert [1, 5] == [sum(address == name for address, _ in fleet.started) for name in "ab"]


def test_without_any_worker_the_run_ends():
    fleet = Scripted("a", "b", script={1: lambda *_: "lost", 2: lambda *_: "lost"})
    with pytest.raises(BackendUnavailable, match="no worker of the fleet is left"):
        dispatched(fleet, Kept(), "uvw")


def test_a_board_whose_disk_is_full_is_used_no_more_and_named(capsys):
    fleet, work = Scripted("a", "b"), Kept(refuses=("a",))
    dispatched(fleet, work, "uvwx")
    assert sorted("uvwx") == sorted(work.results)
    assert 1 == sum(address == "a" for address, _ in fleet.started)
    assert "prism-bench: host a is no longer used: its disk is full\n" == capsys.readouterr().err


def test_a_worker_that_cannot_work_is_used_no_more(capsys):
    full = OSError(28, "No space left on device")
    fleet, work = Scripted("a", "b", script={1: lambda *_: full}), Kept()
    dispatched(fleet, work, "uv")
    assert sorted("uv") == sorted(work.results)
    assert "host a is no longer used: OSError: [Errno 28] No space left on device" in capsys.readouterr().err


def test_where_no_board_can_be_used_the_reason_is_named(capsys):
    fleet = Scripted("a")
    with pytest.raises(BackendUnavailable, match="no board of the fleet is left; the last one: its disk is full"):
        dispatched(fleet, Kept(refuses=("a",)), "u")
    assert "is no longer used" in capsys.readouterr().err


def test_an_unexpected_error_of_a_job_is_not_swallowed():
    fleet = Scripted("a", script={1: lambda *_: ZeroDivisionError("what")})
    with pytest.raises(ZeroDivisionError, match="what"):
        dispatched(fleet, Kept(), "u")
