"""Recordings: on the emulator order and counts, on a planted device times and costs, and what is refused."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from lab.timelines import HEAD, copy

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.compilation import compile_source, nvrtc_version
from prism_bench.compilation.languages import BuiltCode
from prism_bench.errors import BackendUnavailable, CompilationFailed, UsageError, VerificationFailed
from prism_bench.extensions.timeline import recording
from prism_bench.extensions.timeline.recording import RegionBuffer, record, region_id, region_names
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Device
from tests.extensions.timeline.placed import AT, case_of, write

ADVICE = r"\nPB_REGION is defined by a header: add #include <prism_bench/regions\.cuh>$"


@pytest.fixture(scope="module")
def emulator():
    try:
        return EmulatorBackend()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def roles(emulator, tmp_path_factory):
    """The recording of 6 blocks whose warps have two roles."""
    folder = tmp_path_factory.mktemp("roles")
    write(folder, "roles")
    return record(emulator, case_of(folder, "roles"), 1, 1 << 10)


def test_ids_are_those_of_fnv_1a():
    assert (0x811C9DC5, 0xE40C292C, 0xBF9CF968) == (region_id(""), region_id("a"), region_id("foobar"))


def test_every_region_is_counted(roles):
    timeline = roles.timeline
    counts = {name: int((timeline.region == number).sum()) for number, name in enumerate(timeline.names)}
    assert {"half": 6 * 2 * 4, "load": 6 * 2 * 2, "store": 6 * 2 * 2} == counts
    assert not timeline.is_timed and roles.cost is None
    warps = {name: {*timeline.warp[timeline.region == timeline.names.index(name)]} for name in ("load", "store")}
    assert {"load": {0, 1}, "store": {2, 3}} == warps
    assert {*range(6)} == {*timeline.block}


def test_regions_are_in_the_order_of_the_source(roles):
    timeline = roles.timeline
    half, load, store = map(timeline.names.index, ("half", "load", "store"))
    nested = timeline.region != half
    assert (timeline.parent[~nested] == -1).all()
    assert (timeline.region[timeline.parent[nested]] == half).all()
    for block in range(6):
        here = timeline.block == block
        loaded = np.sort(timeline.end[here & (timeline.region == load)])
        stored = np.sort(timeline.begin[here & (timeline.region == store)])
        assert loaded[1] < stored[0] and loaded[3] < stored[2], "a half is stored after both warps loaded it"
    assert [*range(2 * len(timeline))] == sorted([*timeline.begin, *timeline.end])


def test_one_thread_that_goes_alone_records(emulator, tmp_path):
    write(tmp_path, "elected")
    timeline = record(emulator, case_of(tmp_path, "elected"), 1).timeline
    assert (("one thread",), [2] * 6) == (timeline.names, timeline.warp.tolist())


def test_a_kernel_is_verified_with_its_regions_off(emulator, tmp_path):
    from prism_bench.run.verification import passed, verify

    write(tmp_path, "roles")
    assert passed(verify(emulator, case_of(tmp_path, "roles"), (0,)))


def test_a_header_that_is_included_where_it_is_found_is_found(emulator, tmp_path):
    guarded = f"#if __has_include(<prism_bench/regions.cuh>)\n{HEAD}#else\n#define PB_REGION(name)\n#endif\n"
    write(tmp_path, "elected", head=guarded)
    assert 6 == len(record(emulator, case_of(tmp_path, "elected"), 1).timeline)


@pytest.mark.thorough
def test_a_chain_of_the_catalogue_is_recorded(emulator, tmp_path):
    copy(tmp_path, "active_inference_chain:full")
    timeline = record(emulator, case_of(tmp_path, "active_inference_chain:full"), 1).timeline
    assert {"gradient", "sum up"} == {*timeline.names}
    final = timeline.block[timeline.region == timeline.names.index("sum up")]
    assert 1 == len({*final}), "the last block alone adds up"


# What is refused: one sentence each.


@pytest.mark.parametrize(
    ("name", "regions", "error", "words"),
    [
        ("unclosed", 64, UsageError, r"region 'open' never closes in block 0, warp 0 \(24 of 24 regions\)"),
        (
            "roles",
            64,
            UsageError,
            r"of 96 regions were dropped: the buffer has room for 64, and 128 are needed; record a",
        ),
        ("silent", 64, UsageError, "stores nothing in its outputs"),
        ("wrong", 64, VerificationFailed, r"wrong.n=6. on emulator: y"),
        ("untaken", 64, UsageError, "its launches entered no region"),
        ("bare", 64, UsageError, r"bare\.cu has no region; add #include <prism_bench/regions\.cuh>"),
    ],
)
def test_a_sentence_for_what_cannot_be_recorded(emulator, tmp_path, name, regions, error, words):
    write(tmp_path, name)
    with pytest.raises(error, match=words) as raised:
        record(emulator, case_of(tmp_path, name), 1, regions, 64)
    assert "\n" not in str(raised.value)


def test_a_buffer_that_is_too_small_grows(emulator, tmp_path):
    write(tmp_path, "roles")
    recording_ = record(emulator, case_of(tmp_path, "roles"), 1, 64)
    assert (96, RegionBuffer(4, 40)) == (len(recording_.timeline), recording_.buffer)


def test_a_warp_that_ends_in_a_region_is_missed(emulator, tmp_path):
    """Machine code that ends a warp runs no destructor: a record is reserved and never written."""
    capture = recording.Capture(np.zeros(3, recording.RECORD), dropped=0, lost=2, needed=5)
    with pytest.raises(UsageError, match="2 regions of 5 never closed: their warps ended inside them"):
        recording.refuse_incomplete(capture, {}, RegionBuffer(1, 64), "k")


def test_regions_of_comments_and_of_no_source_are_none(tmp_path):
    write(tmp_path, "bare", body='{ /* PB_REGION("a") */ ' + AT + ' y[at] = 2 * x[at]; // PB_REGION("b")\n}')
    with pytest.raises(UsageError, match="has no region"):
        region_names(case_of(tmp_path, "bare"))


def test_two_names_with_one_id_are_refused(tmp_path, monkeypatch):
    write(tmp_path, "roles")
    monkeypatch.setattr(recording, "region_id", lambda _: 7)
    with pytest.raises(UsageError, match="regions 'half' and 'load' have the same id; rename one"):
        region_names(case_of(tmp_path, "roles"))


def test_a_source_without_the_header_is_refused_by_the_compiler(emulator, tmp_path):
    write(tmp_path, "roles", head="\n")
    with pytest.raises(CompilationFailed, match=ADVICE):
        record(emulator, case_of(tmp_path, "roles"), 1)


def test_compilers_name_the_header_that_a_source_lacks(tmp_path):
    source = write(tmp_path, "roles", head="\n")
    try:
        nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    with pytest.raises(CompilationFailed, match=ADVICE):
        compile_source(source, ("roles",), "90")


@pytest.mark.parametrize("name", ["", r"a\"b", r"\x41"])
def test_names_that_are_empty_or_escaped_are_refused(tmp_path, name):
    write(tmp_path, "odd", body=f'{{ PB_REGION("{name}"); {AT} y[at] = 2 * x[at]; }}')
    with pytest.raises(UsageError, match="a name has at least one character, and no backslash"):
        region_names(case_of(tmp_path, "odd"))


@pytest.mark.parametrize(("blocks", "shards"), [(1, 1), (6, 4), (64, 64), (100_000, 64)])
def test_no_shard_of_the_buffer_is_without_a_block(tmp_path, blocks, shards):
    write(tmp_path, "roles")
    path = tmp_path / "planted" / "roles.py"
    path.write_text(path.read_text().replace("n=6", f"n={blocks}"))
    buffer = RegionBuffer.of(case_of(tmp_path, "roles"), Device(), 1000)
    assert (shards, -(-1000 // shards)) == (buffer.shards, buffer.regions)


# A planted device: the emulator, whose events are taken for cycles of a clock of 1 THz, with planted times of launches.


@pytest.fixture
def planted(emulator, monkeypatch):
    """A function that records on a device on which a launch takes these seconds without and with probes."""

    class Planted(EmulatorBackend):
        name = "cuda"

    @contextmanager
    def recorded(plain, probed):
        def timer(runnable, prepare):
            is_probed = any("PRISM_BENCH_REGIONS" in option for option in runnable.case.spec.options)

            def sample():
                prepare()
                runnable()
                return Sample(probed if is_probed else plain, 1e12)

            return sample

        monkeypatch.setattr(recording, "_timers", lambda _: timer)
        monkeypatch.setattr(recording, "build", lambda _: BuiltCode({}, "cuda", "a compiler"))
        monkeypatch.setattr(recording, "code_notes", lambda *builds: [f"{len(builds)} builds"])
        yield lambda case: record(Planted(), case, 9)

    return recorded


def test_the_cost_is_that_of_pairs_of_launches(planted, tmp_path):
    write(tmp_path, "roles")
    with planted(10e-6, 10.9e-6) as recorded:
        recording_ = recorded(case_of(tmp_path, "roles"))
    cost, timeline = recording_.cost, recording_.timeline
    assert timeline.is_timed and 96 == len(timeline), "the buffer is emptied before each launch"
    assert 9 == len(cost.plain) == len(cost.probed)
    assert pytest.approx(0.9e-6) == cost.seconds
    assert pytest.approx(0.09) == cost.share == cost.interval[0] == cost.interval[1]
    assert cost.is_high
    assert timeline.busiest_events == cost.events
    assert pytest.approx(0.9e-6 / cost.events) == cost.per_event
    assert ("2 builds",) == recording_.notes
    assert 0 == timeline.begin.min()


@pytest.mark.parametrize("stalls", [0, 2, 3])
def test_a_launch_that_was_not_held_is_repeated_with_an_empty_buffer(stalls):
    """A second try in the same window would add the regions of the first one."""
    from prism_bench.backends.cuda.backend import CudaBackend
    from prism_bench.backends.cuda.timers import StreamNotHeld

    calls = []

    def timed(call, cold, tries):
        call()
        if calls.count("launch") <= stalls:
            raise StreamNotHeld("late")
        return cold, tries

    backend = CudaBackend.__new__(CudaBackend)
    backend.harness = SimpleNamespace(timed=timed, forget_persisting=lambda: calls.append("forget"))
    sample = recording._timers(backend)(lambda: calls.append("launch"), lambda: calls.append("clear"))
    if stalls == 3:
        with pytest.raises(StreamNotHeld):
            sample()
    else:
        assert (True, 1) == sample()
        assert ["forget", "clear", "launch"] * (stalls + 1) == calls
