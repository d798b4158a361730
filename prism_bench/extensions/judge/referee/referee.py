"""The referee of one case: draws inputs, asks for launches, checks outputs, times."""

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

# Digest of bytes: the same sum on a device (`backends/cuda/guard.cu`) and here, whatever the order of threads.

_WORDS = 1 << 14  # at a time on the host: they and what is computed of them stay in a core's cache
_DEVICE_WORDS = 1 << 24  # at a time elsewhere: as many fill a device, and results of 128 MiB fit next to its buffers
_TAIL = np.uint64(0xD1342543DE82EF95)


def digest_of(array: AnyArray, xp: ArrayModule = np) -> int:
    """Return the digest of the bytes of an array of `xp`: a sum over mixed words and their places, modulo 2**64."""
    content = xp.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole, piece = content.size // 8 * 8, _WORDS if xp is np else _DEVICE_WORDS
    words, tail = content[:whole].view(np.uint64), content[whole:].astype(np.uint64)
    steps = STEP * xp.arange(1, min(words.size, piece) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        places = xp.arange(whole + 1, whole + tail.size + 1, dtype=np.uint64)
        found = mixed(tail + _TAIL * places).sum(dtype=np.uint64)
        for at in range(0, words.size, piece):
            some = words[at : at + piece]
            found += mixed(some + (steps[: some.size] + STEP * np.uint64(at))).sum(dtype=np.uint64)
        return int(found)


def differing(outputs: Mapping[str, AnyArray], digests: Mapping[str, int], xp: ArrayModule) -> list[str]:
    """Return the names of outputs that have another digest."""
    return [name for name, array in outputs.items() if digest_of(array, xp) != digests.get(name)]


# Inputs that are launched, compared, and launched again: drawn once, while the device has the ones before.

KEPT_BYTES = 512 << 20  # of a case's inputs, the latest
_DRAWN_INPUTS_AHEAD = 2  # seeds whose inputs are drawn before they are needed, by default
_Inputs = Mapping[str, InputArray]


class DrawnInputs:
    """The inputs of a case by seed, as `draw` makes them; a context, whose threads draw so many `ahead`."""

    def __init__(self, draw: Callable[[int], _Inputs], ahead: int = _DRAWN_INPUTS_AHEAD) -> None:
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
        """Say which seeds come next, in order."""
        self._expected = deque(seeds)
        self._draw_ahead()

    def __call__(self, seed: int) -> _Inputs:
        """Return the inputs of a seed: the very ones of the last time, unless too many others came between."""
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
    return sum(one.block.nbytes for one in inputs.values())


# A case as a referee takes it, and what came of it.


@dataclass(frozen=True)
class RefereedCase:
    """What is launched of the `cubins`, and how outputs are judged.

    `complaint` compares those on inputs of a seed, in words.
    Of a case that is not `timed` every output is compared in whole. `arrays` is the module whose arrays are compared.
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
    """What came of a case: the seconds of the samples, the seeds of their inputs, and complaints: a rule and words.

    `compared` has the digests of outputs that were right in whole, by the seed of their inputs.
    """

    seconds: list[float] = field(default_factory=list[float])
    seeds: list[int] = field(default_factory=list[int])
    complaints: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    repeatable: bool = True
    compared: dict[int, Mapping[str, int]] = field(default_factory=dict[int, Mapping[str, int]])
    variables: dict[str, int] = field(default_factory=dict[str, int])


# How a referee judges a case: how many launches, how long, and which of their outputs are compared in whole.


@dataclass(frozen=True)
class RefereeRules:
    """How many blocks of samples are taken, each with its module, samples of a block, launches before them.

    An untimed case has one block of `checks` launches. A launch may take `launch_seconds`, those of a case together
    `case_seconds`: beyond them it has no time. Outputs of a block's first launch are compared with the reference in
    whole, of the others a share `whole`, drawn after each launch, and all where they have at most `small_bytes`; the
    rest by their digest. Two clocks that disagree are compared `clock_tries` times, after pauses that grow by
    `clock_pause` seconds. Without `repeats` no other process repeats the launches: code that is trusted does the same
    in each.
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


# Turns on a device that judgements share, and the seconds that each part of a judgement takes.

Turn = Callable[[], AbstractContextManager[None]]
WAITING = "waiting for the device"


class PhaseClock:
    """Seconds by phase, of one thread: those of a phase within another one count for the inner one alone."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each phase so far, to the millisecond."""
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
    """Turns on the device for the parts of `whose` judgement that need it, by the clock: others work in between."""

    def __init__(self, turn: Turn = nullcontext, clock: PhaseClock | None = None, whose: str = "") -> None:
        self._turn, self._clock, self._whose = turn, clock or PhaseClock(), whose

    @contextmanager
    def taken(self, phase: str) -> Iterator[None]:
        """Have the device within a `with` block; waiting for it is a phase by itself. It cannot be taken twice."""
        with self._clock.phase(self._named(phase)):
            with ExitStack() as turn:
                with self._clock.phase(self._named(WAITING)):
                    turn.enter_context(self._turn())
                yield

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """Count the seconds of what needs no device."""
        with self._clock.phase(self._named(phase)):
            yield

    def _named(self, phase: str) -> str:
        return f"{self._whose}: {phase}" if self._whose else phase


# The referee of one case: draws inputs, asks for launches, keeps an own clock, and compares what they left.

_CLOCK_SECONDS = 50e-6  # shorter launches are lost in what the host needs to enqueue them
_ENQUEUE_SECONDS = 30e-6  # that the host may need for each further launch of a case
_CLOCK_SHARE = 0.5  # of the time by this process's clock that the device's may name
_REPEATED_SECONDS = 0.2
_REPEATED = (8, 4000)
AHEAD = 4  # seeds whose inputs are drawn while the device has others


class Referee:
    """Judges cases of one submission, as a context. `random` draws what nobody can know before.

    `start` starts a runner process: one that is timed, and one that repeats its launches where the rules ask for it.
    They serve all cases, and end with the first case that has a complaint.
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
        """End the runners with all that they started."""
        for client in self._runners:
            client.end()
        self._runners, self._facts = [], None

    def _open(self) -> None:
        """Start the runners, side by side, unless they are there."""
        if not self._runners:
            count = 2 if self._rules.repeats else 1
            self._runners = [RunnerClient(self._start(), self._rules.launch_seconds) for _ in range(count)]
            for client in self._runners:
                client.facts()

    def judge(self, case: RefereedCase) -> RefereedTimes:
        """Return times and complaints of a case. A launch that ends its process, or never ends, is a complaint.

        BackendUnavailable where the device has no memory for it, or where its launches take too long together.
        Whatever works on the device does so in a turn: neither drawing inputs nor comparing on the host does.
        """
        found, self._spent = RefereedTimes(), 0.0
        try:
            with self._turns.phase("runners"):
                self._open()
            with DrawnInputs(case.inputs, AHEAD) as self._drawn:
                self._judge(replace(case, inputs=self._inputs), found)
        except BackendUnavailable:
            self.end()
            raise
        except SpecError as error:
            found.complaints.append(("form", f"{case.plan.name}: {error}"))
        except PrismBenchError as error:
            found.complaints.append(("outputs", f"{case.plan.name}: {error}"))
        if found.complaints:
            self.end()
        return found

    def _inputs(self, seed: int) -> Mapping[str, InputArray]:
        with self._turns.phase("inputs"):
            return self._drawn(seed)

    def _load(self, client: RunnerClient, case: RefereedCase) -> LoadAnswer:
        with self._turns.taken("modules and buffers"):
            return client.load(case.plan, case.cubins)

    def _judge(self, case: RefereedCase, found: RefereedTimes) -> None:
        timing = self._runners[0]
        if not case.timed:
            self._block(timing, case, found, {})
            return
        if not self._facts:
            with self._turns.taken("launches"):  # an empty kernel is a limit of times
                self._facts = timing.facts()
        digests: dict[int, dict[str, int]] = {}
        for _ in range(self._rules.blocks):
            self._block(timing, case, found, digests)
            if found.complaints:
                return
        self._doubt_times(timing, case, found, self._facts)
        if self._rules.repeats:
            self._replay(self._runners[1], case, found, digests)

    def _block(
        self, client: RunnerClient, case: RefereedCase, found: RefereedTimes, digests: dict[int, dict[str, int]]
    ) -> None:
        """Take a block of samples, each on inputs that no launch has seen; their number is the rules' alone."""
        found.variables = self._load(client, case).variables
        first, count = (self._rules.warmups, self._rules.samples) if case.timed else (0, self._rules.checks)
        seeds = [self._random.getrandbits(31) for _ in range(first + count)]
        self._drawn.expect(seeds)
        for number, seed in enumerate(seeds):
            seconds = self._launched(client, case, found, digests, seed=seed)
            if not found.complaints and (number == 0 or self._is_whole(case)):
                self._compare(client, case, found, seed=seed, digests=digests[seed])
            if found.complaints:
                return
            if number >= first:
                found.seconds.append(seconds)
                found.seeds.append(seed)

    def _launched(
        self,
        client: RunnerClient,
        case: RefereedCase,
        found: RefereedTimes,
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
        found.complaints += [("outputs", f"{case.plan.name}: {words}") for words in answer.broken]
        if not 0 < answer.seconds <= wall:
            words = f"the device's clock names {time_text(answer.seconds)} of {time_text(wall)} by the referee's"
            found.complaints.append(("clock", f"{case.plan.name}: {words}"))
        return answer.seconds

    def _spend(self, seconds: float) -> None:
        """Count the seconds of launches; BackendUnavailable where others have waited long enough."""
        self._spent += seconds
        if self._spent > self._rules.case_seconds:
            raise BackendUnavailable(f"its launches take more than {self._rules.case_seconds:.0f} s in all")

    def _is_whole(self, case: RefereedCase) -> bool:
        size = sum(one.nbytes for one in case.plan.buffers if one.is_written)
        return not case.timed or size <= self._rules.small_bytes or self._random.random() < self._rules.whole

    def _compare(
        self, client: RunnerClient, case: RefereedCase, found: RefereedTimes, *, seed: int, digests: Mapping[str, int]
    ) -> None:
        """Compare the outputs of the last launch in whole, and with the digests that the runner named."""
        xp = case.arrays()
        if xp is np:
            with self._turns.taken("outputs"):
                brought = client.outputs()
            with self._turns.phase("comparisons"):
                self._look_at(case, found, brought, differing(brought, digests, np), seed=seed, digests=digests)
            return
        with self._turns.taken("comparisons"):
            outputs = copied_outputs(xp, case.plan, client.shared())
            odd = differing(outputs, digests, xp)
            if odd or not outputs:  # what the host brings decides
                outputs = {name: xp.asarray(array) for name, array in client.outputs().items()}
                odd = differing(outputs, digests, xp)
            self._look_at(case, found, outputs, odd, seed=seed, digests=digests)

    def _look_at(
        self,
        case: RefereedCase,
        found: RefereedTimes,
        outputs: Mapping[str, AnyArray],
        odd: list[str],
        *,
        seed: int,
        digests: Mapping[str, int],
    ) -> None:
        if odd:
            found.complaints.append(("outputs", f"{case.plan.name}: {odd[0]} changed after the launch had ended"))
            return
        words = case.complaint(seed, case.inputs(seed), outputs)
        if words:
            found.complaints.append(("outputs", words))
        else:
            found.compared[seed] = digests

    def _replay(
        self, client: RunnerClient, case: RefereedCase, found: RefereedTimes, digests: dict[int, dict[str, int]]
    ) -> None:
        """Launch on all the inputs again, in another process and order; other digests are compared in whole.

        So what a launch left out because of its number, or of what was before it, shows. What it leaves out because of
        its inputs is left out again: of those that were not compared in whole the same share is now.
        """
        seeds = list(digests)
        self._random.shuffle(seeds)
        self._drawn.expect(seeds)
        self._load(client, case)
        for seed in seeds:
            again = dict[int, dict[str, int]]()
            self._launched(client, case, found, again, seed=seed)
            if not found.complaints and again[seed] != digests[seed]:
                found.repeatable = False
            if not found.complaints and found.compared.get(seed) != again[seed]:
                if again[seed] != digests[seed] or self._is_whole(case):
                    self._compare(client, case, found, seed=seed, digests=again[seed])
            if found.complaints:
                return
        if not found.repeatable:
            self._judge_unrepeatable(client, case, found, seeds)

    def _judge_unrepeatable(
        self, client: RunnerClient, case: RefereedCase, found: RefereedTimes, seeds: list[int]
    ) -> None:
        """Take all samples again with every output compared in whole, since digests say nothing of such a kernel."""
        found.seconds.clear()
        found.seeds.clear()
        for index, seed in enumerate(seeds):
            if index % (self._rules.warmups + self._rules.samples) == 0:
                self._load(client, case)
            digests, fresh = dict[int, dict[str, int]](), seed ^ 0x2A2A2A
            found.seconds.append(self._launched(client, case, found, digests, seed=fresh))
            found.seeds.append(fresh)
            if not found.complaints:
                self._compare(client, case, found, seed=fresh, digests=digests[fresh])
            if found.complaints:
                return

    def _doubt_times(self, client: RunnerClient, case: RefereedCase, found: RefereedTimes, facts: FactsAnswer) -> None:
        """Object to times that no launch can have, and to those that this process's clock contradicts."""
        seconds = median(found.seconds)
        peaks = {"bandwidth": facts.bandwidth} if facts.bandwidth else {}
        limits = Limits({"cold_time": facts.overhead}, peaks=peaks, cache_bytes=facts.l2_bytes)
        refusal = plausible("cold_time", seconds, case.work, limits).refusal
        rate = (case.work.flops or 0) / seconds
        if not refusal and facts.operations and rate > facts.operations:
            most = rate_text(facts.operations, "FLOP/s")
            refusal = f"{rate_text(rate, 'FLOP/s')}; no program does more than {most} on this device"
        if refusal:
            found.complaints.append(("physical limits", f"{case.plan.name}: {refusal}"))
            return
        self._doubt_clock(client, case, found, seconds)

    def _doubt_clock(self, client: RunnerClient, case: RefereedCase, found: RefereedTimes, seconds: float) -> None:
        """Object where this process's clock contradicts the device's each time, on other inputs and a new module.

        A host that stalls, or shares its cores, only adds to what its clock names: the least of all tries is believed.
        """
        least, most = _REPEATED
        times = max(least, min(most, round(_REPEATED_SECONDS / seconds)))
        believed = _CLOCK_SECONDS + _ENQUEUE_SECONDS * (len(case.plan.steps) - 1)
        walls = list[float]()
        for number in range(self._rules.clock_tries):
            if number:
                sleep(self._rules.clock_pause * number)
                self._launch_anew(client, case, found)
            if found.complaints:
                return
            with self._turns.taken("launches"):
                walls.append(client.repeated(times) / times)
            self._spend(walls[-1] * times)
            if walls[-1] <= believed or seconds >= _CLOCK_SHARE * walls[-1]:
                return
        words = f"{time_text(min(walls))} by the referee's clock, {time_text(seconds)} by the device's"
        found.complaints.append(("clock", f"{case.plan.name}: a launch takes {words}, each of {len(walls)} times"))

    def _launch_anew(self, client: RunnerClient, case: RefereedCase, found: RefereedTimes) -> None:
        """Load the module again and launch on inputs that no launch has seen; compare in whole, and take no sample."""
        self._load(client, case)
        seed, digests = self._random.getrandbits(31), dict[int, dict[str, int]]()
        self._launched(client, case, found, digests, seed=seed)
        if not found.complaints:
            self._compare(client, case, found, seed=seed, digests=digests[seed])


# Inputs of a launch on a GPU: whoever knows the seed draws the very same again.

_KEYS = 0x6B657973  # with a seed: draws keys, and nothing that fills draw with the seed alone
_KEY_BITS = 63


def launch_inputs(case: Case, seed: int) -> dict[str, InputArray]:
    """Return what the case draws with the seed, by name; what is larger than a block is chosen from it by a key.

    Blocks that repeat would let a kernel read one of them and know the others.
    """
    drawn = case.inputs(seed)
    keys = np.random.default_rng((seed, _KEYS)).integers(1 << _KEY_BITS, size=len(drawn))
    return {name: one.chosen(int(key)) for (name, one), key in zip(drawn.items(), keys, strict=True)}


def repeated_inputs(case: Case) -> list[str]:
    """Return the names of inputs that repeat a block, since their fills do not say what of it belongs together."""
    if case.golden:
        return []
    fill_of = case.correctness.fill_of
    return [
        one.name
        for one in case.spec.inputs
        if prod(one.extents(case.axes)) > BLOCK and fill_of(one).known_runs(case.axes) is None
    ]
