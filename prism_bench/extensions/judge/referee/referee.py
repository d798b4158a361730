"""Referee of a case: draws inputs, requests launches, compares outputs, and checks times."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import prod
from random import Random
from statistics import median
from time import perf_counter, sleep

import numpy as np

from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError
from prism_bench.extensions.judge.referee.client import Runner, RunnerClient
from prism_bench.extensions.judge.referee.cuda_device import copied_outputs
from prism_bench.extensions.judge.referee.messages import CasePlan, FactsAnswer, LoadAnswer
from prism_bench.measure.plausibility import LaunchWork, Limits
from prism_bench.measure.plausibility import judge as plausible
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import BLOCK, STEP, AnyArray, ArrayModule, InputArray, mixed
from prism_bench.units import rate_text, time_text

# Digest of bytes: the same sum on a device (`backends/cuda/guard.cu`) and here, for any order of threads

_WORDS = 1 << 14  # at a time on the host: they and the results stay in a core's cache
_DEVICE_WORDS = 1 << 24  # at a time elsewhere: they fill a device, and results of 128 MiB fit next to its buffers
_TAIL = np.uint64(0xD1342543DE82EF95)


def digest_of(array: AnyArray, xp: ArrayModule = np) -> int:
    """Return the digest of the bytes of an array of `xp`: a sum over mixed words and their places, modulo 2**64."""
    content = xp.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole, piece = content.size // 8 * 8, _WORDS if xp is np else _DEVICE_WORDS
    integers, tail = content[:whole].view(np.uint64), content[whole:].astype(np.uint64)
    steps = STEP * xp.arange(1, min(integers.size, piece) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        places = xp.arange(whole + 1, whole + tail.size + 1, dtype=np.uint64)
        total = mixed(tail + _TAIL * places).sum(dtype=np.uint64)
        for at in range(0, integers.size, piece):
            some = integers[at : at + piece]
            total += mixed(some + (steps[: some.size] + STEP * np.uint64(at))).sum(dtype=np.uint64)
        return int(total)


def differing(outputs: Mapping[str, AnyArray], digests: Mapping[str, int], xp: ArrayModule) -> list[str]:
    """Return the names of outputs whose digest differs from the given digest."""
    return [name for name, array in outputs.items() if digest_of(array, xp) != digests.get(name)]


# Inputs, drawn once, while the device works on the inputs before

KEPT_BYTES = 512 << 20  # of the latest inputs of a case
_Inputs = Mapping[str, InputArray]


class DrawnInputs:
    """Inputs of a case by seed, as `draw` returns them; a context whose threads draw the next `ahead` seeds."""

    def __init__(self, draw: Callable[[int], _Inputs], ahead: int = 2) -> None:
        self._draw, self._bytes, self._ahead = draw, 0, ahead
        self._kept = OrderedDict[int, _Inputs]()
        self._pool = ThreadPoolExecutor(ahead)
        self._expected = deque[int]()
        self._coming = dict[int, Future[_Inputs]]()

    def __enter__(self) -> "DrawnInputs":
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def expect(self, seeds: Iterable[int]) -> None:
        """Announce the next seeds, in order."""
        self._expected = deque(seeds)
        self._draw_ahead()

    def __call__(self, seed: int) -> _Inputs:
        """Return the inputs of a seed: the same objects as before, unless too many others came between."""
        if seed not in self._kept:
            coming = self._coming.pop(seed, None)
            self._kept[seed] = coming.result() if coming else self._draw(seed)
            self._bytes += _size(self._kept[seed])
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= _size(self._kept.popitem(last=False)[1])
        self._kept.move_to_end(seed)
        self._draw_ahead()
        return self._kept[seed]

    def _draw_ahead(self) -> None:
        while self._expected and len(self._coming) < self._ahead:
            seed = self._expected.popleft()
            if seed not in self._kept and seed not in self._coming:
                self._coming[seed] = self._pool.submit(self._draw, seed)


def _size(inputs: _Inputs) -> int:
    return sum(array.block.nbytes for array in inputs.values())


# A case, its results, and the rules


@dataclass(frozen=True)
class RefereedCase:
    """Launches of a case from the `cubins`, and the judgement of its outputs.

    `complaint` compares the outputs for the inputs of a seed and returns a text, empty if they are right. Every output
    of a case that is not `timed` is compared in whole. `arrays` returns the module whose arrays are compared.
    """

    plan: CasePlan
    inputs: Callable[[int], Mapping[str, InputArray]]
    complaint: Callable[[int, Mapping[str, InputArray], Mapping[str, AnyArray]], str]
    work: LaunchWork = LaunchWork()
    cubins: tuple[bytes, ...] = ()
    timed: bool = True
    arrays: Callable[[], ArrayModule] = lambda: np


@dataclass
class RefereedTimes:
    """Results of a case: the seconds of the samples, the seeds of their inputs, and complaints (a rule and a text).

    `compared` has the digests of outputs that were compared in whole and right, by the seed of their inputs.
    """

    seconds: list[float] = field(default_factory=list[float])
    seeds: list[int] = field(default_factory=list[int])
    complaints: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    repeatable: bool = True
    compared: dict[int, Mapping[str, int]] = field(default_factory=dict[int, Mapping[str, int]])
    variables: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class RefereeRules:
    """Numbers of blocks (each with its own module), samples of a block and warm-up launches, and limits.

    An untimed case has one block of `checks` launches. A launch may take `launch_seconds`, all launches of a case
    `case_seconds`: beyond them it has no time. Outputs of a block's first launch are compared with the reference in
    whole, as are those of at most `small_bytes`, and a share `whole` of the others, drawn after each launch; the rest
    is compared by digest, and another process repeats its launches. Two clocks that disagree are compared
    `clock_tries` times, after pauses that grow by `clock_pause` seconds. Without `repeats` no launch is repeated:
    trusted code does the same each time.
    """

    blocks: int = 3
    samples: int = 10
    warmups: int = 2
    checks: int = 2
    launch_seconds: float = 30.0
    case_seconds: float = 300.0
    whole: float = 0.2
    small_bytes: int = 1 << 20
    clock_tries: int = 5
    clock_pause: float = 0.2
    repeats: bool = True

    def is_small(self, case: RefereedCase) -> bool:
        """Return whether the outputs of every launch of a case are compared in whole."""
        return sum(buffer.nbytes for buffer in case.plan.buffers if buffer.is_written) <= self.small_bytes

    def is_repeated_elsewhere(self, case: RefereedCase) -> bool:
        """Return whether another process repeats the launches of a case."""
        return self.repeats and case.timed and not self.is_small(case)


# Turns on a device that judgements share, and seconds by phase

Turn = Callable[[], AbstractContextManager[None]]
WAITING = "waiting for the device"


class PhaseClock:
    """Seconds by phase, of one thread; seconds of a nested phase count only for the inner phase."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each phase so far, to the millisecond."""
        return {name: round(seconds, 3) for name, seconds in self._seconds.items()}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the seconds of a `with` block."""
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self) -> None:
        now = perf_counter()
        if self._open:
            self._seconds[self._open[-1]] = self._seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now


class DeviceTurns:
    """Turns on the device for the parts of a judgement that need it; phases on the clock begin with `whose`."""

    def __init__(self, turn: Turn = nullcontext, clock: PhaseClock | None = None, whose: str = "") -> None:
        self._turn, self._clock, self._whose = turn, clock or PhaseClock(), whose

    @contextmanager
    def taken(self, phase: str) -> Iterator[None]:
        """Hold the device within a `with` block; waiting is a separate phase. A held device cannot be taken again."""
        with self._clock.phase(self._named(phase)):
            with ExitStack() as turn:
                with self._clock.phase(self._named(WAITING)):
                    turn.enter_context(self._turn())
                yield

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """Count the seconds of work that needs no device."""
        with self._clock.phase(self._named(phase)):
            yield

    def _named(self, phase: str) -> str:
        return f"{self._whose}: {phase}" if self._whose else phase


# The referee

_CLOCK_SECONDS = 50e-6  # shorter launches disappear in the host's time to enqueue them
_ENQUEUE_SECONDS = 30e-6  # of the host for each further launch of a case
_CLOCK_SHARE = 0.5  # the device's clock has to report at least this share of the time on this process's clock
_REPEATED_SECONDS = 0.2
_REPEATED = (8, 4000)
AHEAD = 4  # seeds whose inputs are drawn while the device has others


class Referee:
    """Referee of the cases of a submission, as a context. `random` draws seeds, keys and comparisons.

    `start` starts a runner process: one is timed, and another repeats its launches if a case needs that. They serve
    all cases, and end with the first case that has a complaint.
    """

    def __init__(
        self, start: Callable[[], Runner], random: Random, rules: RefereeRules, turns: DeviceTurns | None = None
    ) -> None:
        self._start, self._random, self._rules, self._turns = start, random, rules, turns or DeviceTurns()
        self._runners: list[RunnerClient] = []
        self._facts: FactsAnswer | None = None
        self._spent = 0.0  # seconds of a case's launches
        self._drawn: DrawnInputs

    def __enter__(self) -> "Referee":
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End the runners with all their processes."""
        for client in self._runners:
            client.end()
        self._runners, self._facts = [], None

    def _open(self, case: RefereedCase) -> None:
        """Start the missing runners of a case, side by side."""
        missing = (2 if self._rules.is_repeated_elsewhere(case) else 1) - len(self._runners)
        started = [RunnerClient(self._start(), self._rules.launch_seconds) for _ in range(missing)]
        self._runners += started
        for client in started:
            client.facts()

    def judge(self, case: RefereedCase) -> RefereedTimes:
        """Return times and complaints of a case. A launch that ends its process, or never ends, is a complaint.

        BackendUnavailable if the device lacks memory for the case, or if all its launches together take too long.
        Only work on the device takes a turn, not the drawing of inputs or a comparison on the host.
        """
        times, self._spent = RefereedTimes(), 0.0
        try:
            with self._turns.phase("runners"):
                self._open(case)
            with DrawnInputs(case.inputs, AHEAD) as self._drawn:
                self._judge(replace(case, inputs=self._inputs), times)
        except BackendUnavailable:
            self.end()
            raise
        except SpecError as error:
            times.complaints.append(("form", f"{case.plan.name}: {error}"))
        except PrismBenchError as error:
            times.complaints.append(("outputs", f"{case.plan.name}: {error}"))
        if times.complaints:
            self.end()
        return times

    def _inputs(self, seed: int) -> Mapping[str, InputArray]:
        with self._turns.phase("inputs"):
            return self._drawn(seed)

    def _load(self, client: RunnerClient, case: RefereedCase) -> LoadAnswer:
        with self._turns.taken("modules and buffers"):
            return client.load(case.plan, case.cubins)

    def _judge(self, case: RefereedCase, times: RefereedTimes) -> None:
        timing = self._runners[0]
        if not case.timed:
            self._block(timing, case, times, {})
            return
        if not self._facts:
            with self._turns.taken("launches"):  # an empty kernel is a limit of times
                self._facts = timing.facts()
        digests: dict[int, dict[str, int]] = {}
        for _ in range(self._rules.blocks):
            self._block(timing, case, times, digests)
            if times.complaints:
                return
        self._doubt_times(timing, case, times, self._facts)
        if self._rules.repeats:
            elsewhere = self._rules.is_repeated_elsewhere(case)
            self._replay(self._runners[1] if elsewhere else timing, case, times, digests)

    def _block(
        self, client: RunnerClient, case: RefereedCase, times: RefereedTimes, digests: dict[int, dict[str, int]]
    ) -> None:
        """Take a block of samples, each on new inputs; only the rules decide their number."""
        times.variables = self._load(client, case).variables
        warmups, count = (self._rules.warmups, self._rules.samples) if case.timed else (0, self._rules.checks)
        seeds = [self._random.getrandbits(31) for _ in range(warmups + count)]
        self._drawn.expect(seeds)
        for number, seed in enumerate(seeds):
            seconds = self._launched(client, case, times, digests, seed=seed)
            if not times.complaints and (number == 0 or self._is_whole(case)):
                self._compare(client, case, times, seed=seed, digests=digests[seed])
            if times.complaints:
                return
            if number >= warmups:
                times.seconds.append(seconds)
                times.seeds.append(seed)

    def _launched(
        self,
        client: RunnerClient,
        case: RefereedCase,
        times: RefereedTimes,
        digests: dict[int, dict[str, int]],
        *,
        seed: int,
    ) -> float:
        """Launch on the inputs of a seed and note the digests; return the seconds by the device's clock."""
        inputs = case.inputs(seed)
        with self._turns.phase("inputs"):
            client.give(inputs)
        with self._turns.taken("launches"):
            answer, wall = client.launch(self._random.getrandbits(62))
        self._spend(wall)
        digests[seed] = answer.digests
        times.complaints += [("outputs", f"{case.plan.name}: {text}") for text in answer.broken]
        if not 0 < answer.seconds <= wall:
            text = f"the device's clock names {time_text(answer.seconds)} of {time_text(wall)} by the referee's"
            times.complaints.append(("clock", f"{case.plan.name}: {text}"))
        return answer.seconds

    def _spend(self, seconds: float) -> None:
        """Count the seconds of launches; raise BackendUnavailable beyond the limit: others wait for the device."""
        self._spent += seconds
        if self._spent > self._rules.case_seconds:
            raise BackendUnavailable(f"its launches take more than {self._rules.case_seconds:.0f} s in all")

    def _is_whole(self, case: RefereedCase) -> bool:
        """Return whether outputs are compared in whole; drawn after the launch for large outputs."""
        return not case.timed or self._rules.is_small(case) or self._random.random() < self._rules.whole

    def _compare(
        self, client: RunnerClient, case: RefereedCase, times: RefereedTimes, *, seed: int, digests: Mapping[str, int]
    ) -> None:
        """Compare the outputs of the last launch in whole, and with the digests that the runner reported."""
        xp = case.arrays()
        if xp is np:
            with self._turns.taken("outputs"):
                brought = client.outputs()
            with self._turns.phase("comparisons"):
                self._complain(case, times, brought, differing(brought, digests, np), seed=seed, digests=digests)
            return
        with self._turns.taken("comparisons"):
            outputs = copied_outputs(xp, case.plan, client.shared())
            odd = differing(outputs, digests, xp)
            if odd or not outputs:  # the copies on the host decide
                outputs = {name: xp.asarray(array) for name, array in client.outputs().items()}
                odd = differing(outputs, digests, xp)
            self._complain(case, times, outputs, odd, seed=seed, digests=digests)

    def _complain(
        self,
        case: RefereedCase,
        times: RefereedTimes,
        outputs: Mapping[str, AnyArray],
        odd: list[str],
        *,
        seed: int,
        digests: Mapping[str, int],
    ) -> None:
        if odd:
            times.complaints.append(("outputs", f"{case.plan.name}: {odd[0]} changed after the launch had ended"))
            return
        text = case.complaint(seed, case.inputs(seed), outputs)
        if text:
            times.complaints.append(("outputs", text))
        else:
            times.compared[seed] = digests

    def _replay(
        self, client: RunnerClient, case: RefereedCase, times: RefereedTimes, digests: dict[int, dict[str, int]]
    ) -> None:
        """Launch on all inputs again, in another process and order; compare outputs with other digests in whole.

        This shows work that a launch left out because of its number, or of earlier launches. Work that it leaves out
        because of its inputs is left out again, so the same share of the outputs not yet compared in whole is now.
        Of a case whose outputs were all compared in whole, one launch shows whether it is repeatable.
        """
        seeds = list(digests)
        self._random.shuffle(seeds)
        if self._rules.is_small(case):
            del seeds[1:]
        self._drawn.expect(seeds)
        self._load(client, case)
        for seed in seeds:
            again = dict[int, dict[str, int]]()
            self._launched(client, case, times, again, seed=seed)
            if not times.complaints and again[seed] != digests[seed]:
                times.repeatable = False
            if not times.complaints and times.compared.get(seed) != again[seed]:
                if again[seed] != digests[seed] or self._is_whole(case):
                    self._compare(client, case, times, seed=seed, digests=again[seed])
            if times.complaints:
                return
        if not times.repeatable and not self._rules.is_small(case):
            self._judge_unrepeatable(client, case, times, seeds)

    def _judge_unrepeatable(
        self, client: RunnerClient, case: RefereedCase, times: RefereedTimes, seeds: list[int]
    ) -> None:
        """Take all samples again with every output compared in whole, since digests of such a kernel differ anyway."""
        times.seconds.clear()
        times.seeds.clear()
        for index, seed in enumerate(seeds):
            if index % (self._rules.warmups + self._rules.samples) == 0:
                self._load(client, case)
            digests, fresh = dict[int, dict[str, int]](), seed ^ 0x2A2A2A
            times.seconds.append(self._launched(client, case, times, digests, seed=fresh))
            times.seeds.append(fresh)
            if not times.complaints:
                self._compare(client, case, times, seed=fresh, digests=digests[fresh])
            if times.complaints:
                return

    def _doubt_times(self, client: RunnerClient, case: RefereedCase, times: RefereedTimes, facts: FactsAnswer) -> None:
        """Object to impossible times, and to times that this process's clock contradicts."""
        seconds = median(times.seconds)
        peaks = {"bandwidth": facts.bandwidth} if facts.bandwidth else {}
        limits = Limits({"cold_time": facts.overhead}, peaks=peaks, cache_bytes=facts.l2_bytes)
        refusal = plausible("cold_time", seconds, case.work, limits).refusal
        rate = (case.work.flops or 0) / seconds
        if not refusal and facts.operations and rate > facts.operations:
            most = rate_text(facts.operations, "FLOP/s")
            refusal = f"{rate_text(rate, 'FLOP/s')}; no program does more than {most} on this device"
        if refusal:
            times.complaints.append(("physical limits", f"{case.plan.name}: {refusal}"))
            return
        self._doubt_clock(client, case, times, seconds)

    def _doubt_clock(self, client: RunnerClient, case: RefereedCase, times: RefereedTimes, seconds: float) -> None:
        """Object if this process's clock contradicts the device's in each try, on other inputs and a new module.

        A host that stalls, or shares its cores, only adds to the time on its clock, so one plausible try is enough.
        """
        least, most = _REPEATED
        launches = max(least, min(most, round(_REPEATED_SECONDS / seconds)))
        believed = _CLOCK_SECONDS + _ENQUEUE_SECONDS * (len(case.plan.steps) - 1)
        walls = list[float]()
        for number in range(self._rules.clock_tries):
            if number:
                sleep(self._rules.clock_pause * number)
                self._launch_anew(client, case, times)
            if times.complaints:
                return
            with self._turns.taken("launches"):
                walls.append(client.repeated(launches) / launches)
            self._spend(walls[-1] * launches)
            if walls[-1] <= believed or seconds >= _CLOCK_SHARE * walls[-1]:
                return
        clocks = f"{time_text(min(walls))} by the referee's clock, {time_text(seconds)} by the device's"
        times.complaints.append(("clock", f"{case.plan.name}: a launch takes {clocks}, each of {len(walls)} times"))

    def _launch_anew(self, client: RunnerClient, case: RefereedCase, times: RefereedTimes) -> None:
        """Load the module again and launch on new inputs; compare in whole, and take no sample."""
        self._load(client, case)
        seed, digests = self._random.getrandbits(31), dict[int, dict[str, int]]()
        self._launched(client, case, times, digests, seed=seed)
        if not times.complaints:
            self._compare(client, case, times, seed=seed, digests=digests[seed])


# Inputs of a launch on a GPU, which the seed determines

_KEYS = 0x6B657973  # together with a seed it draws keys, unlike anything that fills draw with the seed alone
_KEY_BITS = 63


def launch_inputs(case: Case, seed: int) -> dict[str, InputArray]:
    """Return the case's inputs for the seed, by name; an input larger than a block is chosen from it by a key.

    With blocks that repeat, a kernel could read one of them and know the others.
    """
    drawn = case.inputs(seed)
    keys = np.random.default_rng((seed, _KEYS)).integers(1 << _KEY_BITS, size=len(drawn))
    return {name: array.chosen(int(key)) for (name, array), key in zip(drawn.items(), keys, strict=True)}


def repeated_inputs(case: Case) -> list[str]:
    """Return the names of inputs that repeat a block, since their fills do not define runs of it."""
    if case.golden:
        return []
    fill_of = case.correctness.fill_of
    return [
        array.name
        for array in case.spec.inputs
        if prod(array.extents(case.axes)) > BLOCK and fill_of(array).known_runs(case.axes) is None
    ]
