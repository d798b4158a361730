"""The referee of one case: draws inputs, asks for launches, keeps an own clock, and compares what they left."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from statistics import median
from time import sleep

import numpy as np

from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError
from prism_bench.extensions.judge.referee.client import Runner, RunnerClient
from prism_bench.extensions.judge.referee.digests import differing
from prism_bench.extensions.judge.referee.drawn_inputs import DrawnInputs
from prism_bench.extensions.judge.referee.messages import FactsAnswer, LoadAnswer
from prism_bench.extensions.judge.referee.refereed import RefereedCase, RefereedTimes
from prism_bench.extensions.judge.referee.rules import RefereeRules
from prism_bench.extensions.judge.referee.shared_outputs import copied_outputs
from prism_bench.extensions.judge.referee.turns import DeviceTurns
from prism_bench.measure.limits import Limits
from prism_bench.measure.plausibility import judge as plausible
from prism_bench.spec.inputs import AnyArray, InputArray
from prism_bench.units import rate_text, time_text

CLOCK_SECONDS = 50e-6  # shorter launches are lost in what the host needs to enqueue them
ENQUEUE_SECONDS = 30e-6  # that the host may need for each further launch of a case
CLOCK_SHARE = 0.5  # of the time by this process's clock that the device's may name
REPEATED_SECONDS = 0.2
REPEATED = (8, 4000)
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
        self, client: RunnerClient, case: RefereedCase, found: RefereedTimes, digests: dict[int, dict[str, int]], *,
        seed: int,
    ) -> float:  # fmt: skip
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
        self, case: RefereedCase, found: RefereedTimes, outputs: Mapping[str, AnyArray], odd: list[str], *, seed: int,
        digests: Mapping[str, int],
    ) -> None:  # fmt: skip
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
        least, most = REPEATED
        times = max(least, min(most, round(REPEATED_SECONDS / seconds)))
        believed = CLOCK_SECONDS + ENQUEUE_SECONDS * (len(case.plan.steps) - 1)
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
            if walls[-1] <= believed or seconds >= CLOCK_SHARE * walls[-1]:
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
