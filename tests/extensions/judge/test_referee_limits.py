"""What a referee leaves undecided, a full device and launches of hours, and what it compares when it repeats them."""

from dataclasses import replace

import pytest

from prism_bench.extensions.judge.referee.client import ContestantCode
from prism_bench.extensions.judge.referee.referee import Referee, RefereeRules
from prism_bench.extensions.judge.referee.session import Contestant
from prism_bench.spec.case import Case
from tests.extensions.judge import near_runner
from tests.extensions.judge.fake_device import FakeDevice
from tests.extensions.judge.near_runner import LARGE, RULES, judged, session

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures


class FullDevice(FakeDevice):
    """Others have taken all of its memory."""

    def allocate(self, size: int) -> int:
        raise MemoryError("12000 bytes")


def test_what_was_not_compared_in_whole_may_be_when_it_is_repeated(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may be wrong for some inputs alone: then its digests agree."""
    seeds, chosen = list[int](), iter(range(1000))
    monkeypatch.setattr(
        "prism_bench.extensions.judge.referee.session.compare_outputs",
        lambda backend, case, inputs, outputs, seed: seeds.append(seed) or [],
    )
    launches = RULES.blocks * (RULES.samples + RULES.warmups)
    in_blocks = launches - RULES.blocks  # those that are drawn
    monkeypatch.setattr(near_runner, "RULES", LARGE)
    monkeypatch.setattr(Referee, "_is_whole", lambda referee, case: next(chosen) >= in_blocks)
    assert [] == judged(case, "honest").objections
    assert launches == len(seeds) == len(set(seeds))


@pytest.mark.parametrize(
    ("rules", "device", "words"),
    [
        (replace(RULES, case_seconds=0.02), FakeDevice, "its launches take more than 0 s in all"),
        (RULES, FullDevice, "no memory on the device: 12000 bytes"),
    ],
)  # fmt: skip
def test_a_case_that_the_device_cannot_judge_is_not_wrong(
    case: Case, rules: RefereeRules, device: type[FakeDevice], words: str
) -> None:
    opened = session(device(), rules)
    opened.run(Contestant("honest", "submission", [case], ContestantCode(b"honest", {"add": "add"})))
    assert ([], []) == (opened.findings.objections, opened.findings.times)
    assert words in opened.findings.unjudged[0]
