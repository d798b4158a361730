"""The scripted backend: no device, made-up times, planned faults. Every command can be tried on it in milliseconds.

The script is a JSON file named by PRISM_BENCH_NULL: {pattern: behaviour}, the pattern of a case's name or of its task
(name@block=128). `with_source` of a behaviour holds changes of it by a text in the kernel's source or spec, so that
two commits differ. A behaviour may hold `seconds` (the median, 1e-6), `noise` (relative, 0.01), `joules` (of a launch;
without it there is no energy counter), `counter` (fields of the `PlayedBoard` behind it), `clock` (Hz), `sass` and
`source` (hashes), `compiler` (`NVRTC 13.0`), and faults, each true or false: `wrong`,
`nan` (one element), `unwritten` (outputs keep the poison), `skips` (so they do from the second call on), `idles` (timed
launches leave outputs as they find them), `shape` (one element short), `mutates`, `crash`, `hang`, `fails` (no hot
time), `memory`; and `raises` (the words of an exception). `peers` holds the behaviours of library calls by name; these
may hold two more faults: `leaks` (the bytes that each call loses) and `changes` (NumPy's error state, for good).
PRISM_BENCH_NULL_GPU is the UUID of the GPU that it pretends to run on, for tests of what watches it.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.base import Backend, HeldBytes, HostGuard, Runnable, TimerFactories
from prism_bench.backends.numpy_reference import NumpyBackend, NumpyRunnable
from prism_bench.errors import MeasurementInvalid, UsageError
from prism_bench.monitor.played_board import PlayedBoard
from prism_bench.record.identity import host_digest
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Case
from prism_bench.spec.dtypes import precision_of
from prism_bench.spec.inputs import InputArray

SCRIPT = "PRISM_BENCH_NULL"
GPU = "PRISM_BENCH_NULL_GPU"
Behaviour = Mapping[str, Any]  # the behaviour of a case in a script; `_BEHAVIOUR` names its keys
Script = Mapping[str, Behaviour]
_BEHAVIOUR = (
    "seconds", "noise", "joules", "counter", "clock", "sass", "compiler", "source", "wrong",
    "nan", "unwritten", "skips", "idles", "shape", "mutates", "crash",
    "hang", "fails", "memory", "raises", "peers", "leaks", "changes", "with_source",
)  # fmt: skip


def open_backend() -> "NullBackend":
    """Open the backend with the script of the environment, or well-behaved without one."""
    path = os.environ.get(SCRIPT)
    if not path:
        return NullBackend()
    try:
        return NullBackend(_checked(json.loads(Path(path).read_text())))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{SCRIPT}={path}: not a readable JSON script ({error})") from error


def scripts_energies() -> bool:
    """Return whether the script of the environment has the energy of a launch."""
    path = os.environ.get(SCRIPT)
    return bool(path) and '"joules"' in Path(path).read_text()


def _checked(script: object) -> Script:
    """Return the script if it is a table of behaviours that this backend knows; else raise ValueError."""
    if not isinstance(script, dict) or not all(isinstance(behaviour, dict) for behaviour in script.values()):
        raise ValueError("it holds no table of behaviours by pattern")
    inner = [_checked(entry[key]) for entry in script.values() for key in ("peers", "with_source") if key in entry]
    behaviours = [behaviour for table in (script, *inner) for behaviour in table.values()]
    odd = sorted({word for behaviour in behaviours for word in behaviour} - set(_BEHAVIOUR))
    if odd:
        raise ValueError(f"it scripts {', '.join(odd)}; known are {', '.join(_BEHAVIOUR)}")
    return script


class NullRunnable(NumpyRunnable):
    """A case whose outputs are the reference's and whose times are scripted."""

    def __init__(self, case: Case, inputs: Mapping[str, InputArray], special: ModuleType, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._rng = np.random.default_rng(7)
        self._calls = 0
        self._verified = {}
        self.leaked = 0
        super().__init__(case, inputs, special)

    def __call__(self) -> None:
        if self._behaviour.get("crash"):
            os.abort()
        if self._behaviour.get("hang"):
            time.sleep(3600)
        if self._behaviour.get("raises"):
            raise RuntimeError(self._behaviour["raises"])
        if self._behaviour.get("changes"):
            np.seterr(divide="raise")
        self.leaked += self._behaviour.get("leaks", 0)
        super().__call__()
        self._calls += 1
        self._results = {name: self._damaged(name, output) for name, output in self._results.items()}
        if self._behaviour.get("mutates"):
            for array in self._inputs.values():
                array += 1

    def _damaged(self, name: str, output: np.ndarray) -> np.ndarray:
        scripted = self._behaviour
        if scripted.get("unwritten") or (scripted.get("skips") and self._calls > 1):
            poison = np.nan if precision_of(self.case.spec.array(name).dtype) else -91
            return self._held.get(name, np.full(output.shape, poison))
        if scripted.get("nan"):
            return np.where(np.arange(output.size).reshape(output.shape) == 0, np.nan, output)
        if scripted.get("shape"):
            return output.reshape(-1)[:-1]
        return output + 1 if scripted.get("wrong") else output

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self._held: dict[str, np.ndarray] = {}
        super().reset(inputs)

    def put(self, name: str, values: np.ndarray) -> None:
        if name in self._inputs:
            super().put(name, values)
        else:
            self._held[name] = values

    def guard(self, key: int) -> HostGuard:
        self._results = {name: np.array(output) for name, output in self._results.items()}
        self._verified = {name: output.copy() for name, output in self._results.items()}
        return HostGuard(self._results, key=key)

    def timers(self) -> TimerFactories:
        return {"cold_time": lambda: self._sample, "hot_time": self._hot}

    def evidence(self) -> dict[str, Any]:
        scripted = self._behaviour
        known = {name: scripted[name] for name in ("compiler", "source") if name in scripted}
        facts = {"sass": scripted.get("sass", "null"), "language": self.case.spec.written_in, **known}
        return {**facts, "registers": 0, "spill_bytes": 0, "launches": 1}

    def _hot(self) -> Callable[[], Sample]:
        if self._behaviour.get("fails"):
            raise MeasurementInvalid("scripted to fail")
        return _Replay(self._sample, self._behaviour) if "joules" in self._behaviour else self._sample

    def _sample(self) -> Sample:
        for name, output in self._verified.items():
            if not self._behaviour.get("idles"):
                self._results[name][...] = output
        return _scripted_sample(self._behaviour, self._rng)


class _Replay:
    """A hot timer that repeats its launch on a board that is played; `joules` of each are drawn in 1 ms."""

    replay_seconds = 1e-3

    def __init__(self, sample: Callable[[], Sample], behaviour: Behaviour) -> None:
        each, joules = self.replay_seconds, behaviour["joules"]
        usual = {"idle": 0.2 * joules / each, "noise": behaviour.get("noise", 0.01), "seed": 7}
        self.board = PlayedBoard(joules / each, each=each, **usual | behaviour.get("counter", {}))
        self._sample, self.repeated = sample, self.board.repeated

    def __call__(self) -> Sample:
        return self._sample()


def _scripted_sample(behaviour: Behaviour, rng: np.random.Generator) -> Sample:
    noise = 1 + behaviour.get("noise", 0.01) * rng.standard_normal()
    seconds = behaviour.get("seconds", 1e-6) * max(noise, 0.1)
    return Sample(seconds, behaviour.get("clock"), seconds)


class NullBackend(Backend):
    """Scripted behaviour by pattern of case names; the first pattern that matches counts."""

    name = "null"
    xp = np

    def __init__(self, script: Script | None = None) -> None:
        self._script, self._leaking = script or {}, list[NullRunnable]()
        self._numpy = NumpyBackend()

    @property
    def special(self) -> ModuleType:
        return self._numpy.special

    def facts(self) -> dict[str, Any]:
        facts = {"device": "no device (scripted times)", "software": {"numpy": np.__version__}}
        board = {"uuid": os.environ.get(GPU), "board": {"host": host_digest()}}
        return facts | (board if os.environ.get(GPU) else {})

    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> NullRunnable:
        return self._prepared(case, inputs, self._behaviour(case))

    def _prepared(self, case: Case, inputs: Mapping[str, InputArray], behaviour: Behaviour) -> NullRunnable:
        if behaviour.get("memory"):
            raise MemoryError("wants 1 PB, scripted")
        return NullRunnable(case, inputs, self.special, behaviour)

    def peers(self, case: Case) -> tuple[str, ...]:
        return tuple(self._behaviour(case).get("peers", {}))

    def prepare_peer(self, case: Case, name: str, runnable: Runnable) -> NullRunnable:
        behaviour = self._behaviour(case)["peers"][name]
        peer = self._prepared(case, runnable.inputs, behaviour)
        self._leaking += [peer] if behaviour.get("leaks") else []
        return peer

    def held_bytes(self, alone: bool) -> HeldBytes:
        return HeldBytes(sum(peer.leaked for peer in self._leaking))

    def scripted_timer(self, name: str) -> Callable[[], Sample]:
        """Return a timer of a user's function, with the behaviour that the script has for that name.

        MeasurementInvalid where it is scripted to fail.
        """
        behaviour = self.scripted(name)
        if behaviour.get("fails"):
            raise MeasurementInvalid("scripted to fail")
        return partial(_scripted_sample, behaviour, np.random.default_rng(7))

    def scripted(self, name: str) -> Behaviour:
        """Return the behaviour that the script has for that name of something that is no case of a catalogue."""
        return next((b for pattern, b in self._script.items() if fnmatchcase(name, _literal(pattern))), {})

    def _behaviour(self, case: Case) -> Behaviour:
        behaviour = next((b for pattern, b in self._script.items() if _fits(case, _literal(pattern))), {})
        files = (case.spec.source_file, case.spec.file) if "with_source" in behaviour else ()
        text = "\n".join(path.read_text() for path in files if path)
        changes = [change for part, change in behaviour.get("with_source", {}).items() if part in text]
        return {**behaviour, **{key: value for change in changes for key, value in change.items()}}


def _fits(case: Case, pattern: str) -> bool:
    return fnmatchcase(case.name, pattern) or fnmatchcase(case.task, pattern)


def _literal(pattern: str) -> str:
    """Case names hold brackets, which fnmatch would read as a set of characters."""
    return pattern.replace("[", "[[]")
