"""What a replay answers: from planted measurements, and from code that is not of the catalogue here."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import CompilationFailed, ResultsError
from prism_bench.extensions.claims import replaying
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import ClaimRatio, encoded
from prism_bench.extensions.claims.replaying import ClaimReplay, Replay, answer, scaled
from prism_bench.spec.peer import PeerFacts
from tests.extensions.claims.changes import forged_cubin
from tests.extensions.claims.planted import claim_in, plant, record, resealed
from tests.report.synthetic import case_result

PEER = "peer:torch"


@pytest.fixture
def replayed(monkeypatch, catalogue):
    """A function that replays a claim where both sides would take so many seconds."""

    def run(made, *, seconds=(1e-5, 2e-5, 3e-5), processes=5, change=lambda one: one, **request):
        found = change(record(seconds=seconds, processes=processes))
        monkeypatch.setattr(replaying.ClaimMeasurement, "builds", lambda *_: (found, found))
        monkeypatch.setattr(replaying.ClaimMeasurement, "peers", lambda *_: found)
        return ClaimReplay(*checked(encoded(made), "claim"), catalogue, **request).replay()

    return run


def with_status(status, reason):
    def change(made):
        first, *others = made.cases
        return replace(made, cases=(replace(first, status=status, reason=reason), *others))

    return change


def without_times(made):
    first, *others = made.cases
    return replace(made, cases=(replace(first, measurements=()), *others))


@pytest.mark.parametrize(
    ("options", "word", "code"),
    [({}, "reproduced", 0), ({"seconds": (1e-5, 1.5e-5, 3e-5)}, "partly reproduced", 1),
     ({"seconds": (2e-5, 1e-5, 3e-5)}, "not reproduced", 1),
     ({"change": with_status("wrong", "y[3] is 4")}, "not reproduced", 1),
     ({"change": without_times}, "cannot be decided here", 3), ({"processes": 1}, "cannot be decided here", 3)],
    ids=["same", "other size", "other side", "wrong output", "no times", "one process"],
)  # fmt: skip
def test_the_answer_follows_from_what_was_measured(replayed, claim, options, word, code):
    found = replayed(claim, **options)
    assert (word, code) == (found.answer.word, found.exit_code), found.answer.because
    assert claim.digest == found.claim


def test_a_claim_about_a_peer_is_measured_next_to_it(replayed, catalogue):
    made = claim_in(catalogue, baseline="triple[n=1000]", subject=PEER)
    assert "3.00x of torch (torch 2.11.0, library kernel)" in made.sentence
    assert "reproduced" == replayed(made).answer.word
    assert "not reproduced" == replayed(made, seconds=(1e-5, 2e-5, 9e-6)).answer.word


def test_times_of_another_device_are_refused_without_ceilings(replayed, catalogue):
    made = claim_in(catalogue, record(device="another device"))
    found = replayed(made)
    assert ("cannot be decided here", True) == (found.answer.word, "another device" in found.answer.because)


LIMITS = (
    case_result("null", family="machine", times={"cold_time": 4e-6}, ceiling="launch", bytes=0),
    case_result("copy", family="machine", times={"cold_time": 1e-3}, ceiling="bandwidth", bytes=4_000_000_000),
)


@pytest.mark.parametrize(
    ("faster", "word", "words"),
    [(1, "reproduced", ""), (550_000, "not reproduced", "an empty kernel takes 4.00 us here"), (4, "reproduced", "")],
)
def test_a_time_that_the_ceilings_here_make_impossible_is_refused(
    replayed: Callable[..., Replay], catalogue: Catalogue, faster: float, word: str, words: str
) -> None:
    """8 kB in 18.2 ps are 440 TB/s; both sides have the claimed ratio. Launches of hosts differ by microseconds."""
    made = claim_in(catalogue, record(seconds=(1e-5 / faster, 2e-5 / faster, 3e-5 / faster)))
    found = replayed(made, ceilings=LIMITS)
    assert (word, True) == (found.answer.word, words in found.answer.because), found.answer.because
    assert ["right" if word == "reproduced" else "wrong"] == [
        one.result for one in found.checks if one.what == "claimed times"
    ]


def test_bandwidth_beyond_the_ceiling_here_is_refused(replayed: Callable[..., Replay], catalogue: Catalogue) -> None:
    made = claim_in(catalogue, record(seconds=(1.8e-11, 3.6e-11, 3e-5)))
    found = replayed(made, ceilings=LIMITS[1:])
    assert "not reproduced" == found.answer.word
    assert "442 TB/s is more than 3 % above the copy ceiling of this run, 4.00 TB/s" in found.answer.because


def test_python_that_is_not_here_does_not_run(claim, tmp_path, monkeypatch):
    ran = tmp_path / "ran"
    other = plant(tmp_path / "other")
    spec = other.folder / "arith" / "triple.py"
    spec.write_text(f"{spec.read_text()}\n__import__('pathlib').Path({str(ran)!r}).touch()\n")
    made = claim_in(discover(other.folder))
    ran.unlink()
    content = checked(encoded(made), "claim")
    found = ClaimReplay(*content, plant(tmp_path / "own")).replay()
    assert ("cannot be decided here", False) == (found.answer.word, ran.exists())
    assert "arith/triple.py would run on the host" in found.answer.because
    ClaimReplay(*content, plant(tmp_path / "mine"), "emulator", trusted=True).replay()
    assert ran.exists(), "trusted, it runs"


@pytest.mark.parametrize(
    ("body", "word"), [("3.0f * x[i] + 0 * n", "cannot be decided here"), ("2.0f * x[i]", "not reproduced")]
)
def test_device_code_that_is_not_here_runs_in_a_jail(claim, catalogue, tmp_path, body, word):
    other = plant(tmp_path / "other")
    source = other.folder / "arith" / "triple.cu"
    source.write_text(source.read_text().replace("3.0f * x[i]", body))
    found = ClaimReplay(*checked(encoded(claim_in(other)), "claim"), catalogue).replay()
    outputs = [one for one in found.checks if one.what.startswith("outputs")]
    if any(one.result == "open" for one in outputs):
        pytest.skip(outputs[0].text)
    assert word == found.answer.word, found.answer.because
    assert found.here is None
    (first, *_) = [one for one in found.checks if one.what.startswith("machine code")]
    assert first.result == "same" or "NVRTC" in first.text, "the compiler runs in the jail, too"


def test_forged_code_that_is_not_here_is_refused_from_the_jail(catalogue, tmp_path):
    other = plant(tmp_path / "other")
    source = other.folder / "arith" / "triple.cu"
    source.write_text(source.read_text().replace("3.0f * x[i]", "x[i] * 3.0f"))
    plain = json.loads(encoded(claim_in(other)))
    if not plain["kernel"]["code"]:
        pytest.skip("no compiler of CUDA is here")
    forged_cubin(plain)
    forged = checked(resealed(plain), "claim")
    try:
        found = ClaimReplay(*forged, catalogue).replay()
    except ResultsError as error:
        assert "makes other instructions of its sources" in str(error)
    else:
        assert "no jail" in str(found.checks)


def test_a_case_that_cannot_run_here_is_not_refuted(replayed, claim):
    """As where the compiler is too old: it has failed, and nothing about its outputs is known."""
    found = replayed(claim, change=with_status("failed", "invalid value for --gpu-architecture"))
    assert ("cannot be decided here", True) == (found.answer.word, "--gpu-architecture" in found.answer.because)


def of_version(version):
    def change(made):
        first, *others = made.cases
        peers = {"torch": PeerFacts(library="torch", version=version, kind="library kernel")}
        return replace(made, cases=(replace(first, peers=peers), *others))

    return change


@pytest.mark.parametrize(
    ("peer", "version", "word"),
    [(3e-5, "2.11.0", "reproduced"), (2e-5, "2.11.0", "partly reproduced"), (3e-5, "2.12.0", "reproduced"),
     (2e-5, "2.12.0", "cannot be decided here")],
)  # fmt: skip
def test_a_baseline_of_another_version_does_not_refute(replayed, catalogue, peer, version, word):
    made = claim_in(catalogue, baseline="triple[n=1000]", subject=PEER)
    found = replayed(made, seconds=(1e-5, 2e-5, peer), change=of_version(version))
    is_same = version == "2.11.0"
    assert word == found.answer.word
    assert ["same" if is_same else "other"] == [one.result for one in found.checks if one.what == "baseline"]
    assert is_same != ("here it is torch (torch 2.12.0, library kernel)" in found.answer.because)


def test_what_the_emulator_does_not_compile_stays_open(claim, catalogue, monkeypatch):
    def fail(*_):
        raise CompilationFailed("no such instruction on a CPU")

    monkeypatch.setattr(replaying, "verify", fail)
    found = ClaimReplay(*checked(encoded(claim), "claim"), catalogue, "emulator").replay()
    assert "cannot be decided here" == found.answer.word
    assert 1 == sum(one.text == "no such instruction on a CPU" for one in found.checks), "once, not for each case"


def test_the_seeds_that_were_verified_are_named(replayed, claim):
    (outputs,) = [one for one in replayed(claim).checks if one.what == "outputs"]
    assert outputs.text == "both sides, on seed 0", "the record has no other one"


def ratio(value, low, high):
    return ClaimRatio(value, low, high)


@pytest.mark.parametrize(
    ("claimed", "here", "word"),
    [(ratio(1.5, 1.4, 1.6), ratio(1.6, 1.55, 1.7), "reproduced"),
     (ratio(1.5, 1.4, 1.6), None, "cannot be decided here"),
     (ratio(1.5, 1.4, 1.6), ratio(1.4, 0.9, 2.2), "cannot be decided here"),
     (ratio(1.0, 0.98, 1.02), ratio(1.0, 0.99, 1.01), "reproduced"),
     (ratio(1.0, 0.9, 1.1), ratio(0.8, 0.2, 3.1), "cannot be decided here"),
     (ratio(1.5, 1.4, 1.6), ratio(3.0, 1.05, 8.6), "cannot be decided here"),
     (ratio(1.5, None, None), ratio(1.5, 1.4, 1.6), "cannot be decided here"),
     (ratio(1.5, 1.4, 1.6), ratio(1.2, 1.1, 1.3), "partly reproduced"),
     (ratio(1.5, 1.4, 1.6), ratio(1.0, 0.9, 1.1), "not reproduced"),
     (ratio(0.5, 0.4, 0.6), ratio(0.7, 0.65, 0.8), "partly reproduced")],
)  # fmt: skip
def test_intervals_decide(claimed, here, word):
    assert word == answer(claimed, here).word


@pytest.mark.parametrize(
    ("claimed", "here", "word"),
    [(ratio(1.5, 1.4, 1.6), ratio(1.3, 1.2, 1.4), "reproduced"),
     (ratio(1.5, 1.4, 1.6), ratio(0.8, 0.75, 0.85), "cannot be decided here"),
     (ratio(1.5, 1.4, 1.6), ratio(1.0, 0.95, 1.05), "cannot be decided here"),
     (ratio(1.0, 0.98, 1.02), ratio(1.5, 1.4, 1.6), "cannot be decided here"),
     (ratio(1.0, 0.98, 1.02), ratio(1.0, 0.99, 1.01), "reproduced"),
     (ratio(1.5, 1.4, 1.6), ratio(5.0, 4.9, 5.1), "partly reproduced"),
     (ratio(1.5, 1.4, 1.6), ratio(0.5, 0.4, 0.6), "not reproduced")],
)  # fmt: skip
def test_on_another_device_the_side_has_to_be_the_claims(claimed, here, word):
    """An interval that is widened to 0.7 to 3.2 also holds a kernel that is slower."""
    found = answer(claimed, here, ratio(claimed.value, 0.7, 3.2))
    assert word == found.word, found.because
    assert "0.70 to 3.20 expected here" in found.because


def test_another_device_widens_the_interval_by_how_differently_its_ceilings_scale():
    there, here = {"bandwidth": 4e12, "fp32": 6e13, "launch": 2e-6}, {"bandwidth": 2e12, "fp32": 6e13, "launch": 2e-6}
    found, words = scaled(ratio(1.5, 1.4, 1.6), there, here)
    assert (1.5, 0.7, 3.2) == (found.value, found.low, found.high)
    assert "2.00 times as wide" in words
    assert scaled(ratio(1.5, 1.4, 1.6), there, {"launch": 2e-6}) is None
    assert scaled(ratio(1.5, 1.4, 1.6), there, there)[0] == ratio(1.5, 1.4, 1.6)


@pytest.mark.parametrize(
    ("change", "words"),
    [(with_status("wrong", "y is off"), "y is off"), (without_times, "no cold_time"),
     (lambda one: replace(one, cases=(replace(one.cases[0], verification=()), *one.cases[1:])), "not verified")],
)  # fmt: skip
def test_no_claim_is_made_of_what_cannot_be_trusted(catalogue, change, words):
    with pytest.raises(ResultsError, match=words):
        claim_in(catalogue, change(record()))


def test_the_same_records_make_the_same_bytes(claim, catalogue):
    assert encoded(claim) == encoded(claim_in(catalogue))


def test_a_claim_that_would_be_too_large_names_its_largest_file(catalogue, tmp_path):
    other = plant(tmp_path / "large")
    source = other.folder / "arith" / "triple.cu"
    source.write_text(f"{source.read_text()}//{'x' * 2_000_000}\n")
    with pytest.raises(ResultsError, match=r"at most 2,000,000: its largest file is arith/triple\.cu"):
        encoded(claim_in(other))
