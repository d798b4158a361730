"""`compile --toolchains`: what changes between toolchains, planted by options of the installed NVRTC. No network."""

import zipfile
from importlib.metadata import version
from pathlib import Path
from shutil import copy

import pytest

from prism_bench.analysis.compare.comparison import ComparedCase, RecordComparison
from prism_bench.catalogue import discover
from prism_bench.compilation import nvrtc_version
from prism_bench.compilation.compilers import NVRTC_OPTIONS, include_folders
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.io.files import cache_folder
from prism_bench.workflows import toolchains
from prism_bench.workflows.toolchains import (
    NamedToolchain,
    compare_toolchains,
    compared_bits,
    named_toolchains,
    opened,
    paired,
)

ARCHITECTURES = ("-arch=sm_80", "-arch sm_80", "--gpu-architecture=compute_80", "-DA --gpu-architecture sm_80")
TOYS = Path(__file__).parent.parent / "toys" / "arith"
SOURCE = """
extern "C" __global__ void greedy(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float kept[40];
    for (int k = 0; k < 40; ++k) kept[k] = x[min(i + 7 * k, n - 1)];
    float sum = 0.0f;
    for (int k = 0; k < 40; ++k) sum += kept[k] * kept[39 - k] + x[min(i * k, n - 1)];
    y[i] = x[i] + 0.0f * sum;
}
"""
SPEC = '''"""A sum over values that are all live at once."""

from prism_bench import In, KernelSpec, Launch, Out, Size, Workload, exact

spec = KernelSpec(
    entry="greedy",
    arguments=(In("x", "n"), Out("y", "n"), Size("n")),
    launch=lambda n: Launch(grid=-(-n // 256), block=256),
    reference=lambda x: x,
    tolerance=exact(),
    workloads={"S0": Workload(n=1000)},
)
'''


@pytest.fixture(scope="module", autouse=True)
def nvrtc():
    """Skips, saying what to install, where there is no offline compiler."""
    try:
        return nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def kernels(tmp_path):
    """A catalogue of a foreign repository: a kernel that needs many registers, and one that needs few."""
    folder = tmp_path / "bench" / "own"
    folder.mkdir(parents=True)
    (folder / "greedy.cu").write_text(SOURCE)
    (folder / "greedy.py").write_text(SPEC)
    for name in ("triple.cu", "triple.py"):
        copy(TOYS / name, folder)
    return folder.parent


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """No toolchain in the cache, and no package index."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return tmp_path / "cache"


def test_planted_register_step_and_spill_are_named(shell, kernels, monkeypatch):
    compared = []
    monkeypatch.setattr(
        toolchains, "compare_toolchains", lambda *words: compared.append(compare_toolchains(*words)) or compared[-1]
    )
    capped, tight = "installed --maxrregcount=32", "installed --maxrregcount=24"
    words = ("compile", "--catalogue", kernels, "--arch", "90", "--toolchains", f"{capped},installed,{tight}")
    found = shell(*words, "--json")
    (step, spill), version = found.json, nvrtc_version()
    assert 1 == found.code
    assert [[capped, "installed"], ["installed", tight]] == [each["toolchains"] for each in found.json]
    assert [f"NVRTC {version}"] * 2 == step["compilers"]
    (grown,), (spilled,) = step["changes"], spill["changes"]
    assert ["triple"] == step["same"] == spill["same"]
    assert ("greedy", ["greedy"], None) == (grown["kernel"], grown["entries"], step["device"])
    assert [32, grown["registers"][1]] == grown["registers"]
    assert "fit a multiprocessor, 8 before" in grown["steps"][0]
    assert [0, spilled["spill_bytes"][1]] == spilled["spill_bytes"]
    assert [f"greedy spills {spilled['spill_bytes'][1]} bytes, 0 before"] == spilled["steps"]
    before, after = spilled["code_difference"][0]["kinds"]["local memory"]
    assert before == 0 < after
    assert all(seconds > 0 for seconds in spilled["compile_seconds"])
    monkeypatch.setattr(toolchains, "compare_toolchains", lambda *_: compared[-1])
    shown = shell(*words)
    assert 1 == shown.code
    assert "machine code of 1 kernel changed, of 1 kernel not" in shown.out
    assert f"greedy on sm_90: {spilled['steps'][0]}" in shown.out
    assert f"NVRTC {version} -> NVRTC {version} --maxrregcount=24" in shown.out


def test_a_folder_of_the_installed_release_makes_the_same_code(shell, kernels, tmp_path):
    include = next(Path(folder) for folder in include_folders() if Path(folder, "cuda_fp16.h").is_file())
    toolkit = tmp_path / "toolkit"
    toolkit.mkdir()
    (toolkit / "include").symlink_to(include)
    (toolkit / "lib").symlink_to(include.parent / "lib")
    if not list((toolkit / "lib").glob("libnvrtc.so*")):
        pytest.skip("NVRTC is not next to its headers here")
    found = shell("compile", "--catalogue", kernels, "--arch", "90", "--toolchains", f"installed,{toolkit}")
    assert (0, "") == (found.code, found.err)
    assert "machine code of 0 kernels changed, of 2 kernels not" in found.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("12", "'12' names no toolchain"),
        ("12.9,,13.0", "'' names no toolchain"),
        ("tritom-3.6.0", "'tritom-3.6.0' names no toolchain"),
        ("12.9 '-a", "names no toolchain"),
        ("12.9,12.9", "'12.9' is named twice"),
        ("triton-3.6.0 -O1", "only NVRTC takes options"),
        ("installed -arch=sm_80", "leave out -arch=sm_80: --arch, or the device, names the architecture"),
        ("installed --gpu-architecture compute_80", "leave out --gpu-architecture: --arch, or the device, names the"),
        ("installed", "name another one"),
        (".", "has no libnvrtc.so"),
        (nvrtc_version, "are the same compiler"),
        ("--write", "leave it out with --toolchains"),
    ],
)
def test_a_mistake_ends_with_2_and_one_line(shell, kernels, text, words):
    more = ("installed", "--write") if text == "--write" else (text() if callable(text) else text,)
    found = shell("compile", "--catalogue", kernels, "--toolchains", *more)
    assert (2, 1, "") == (found.code, found.err.count("\n"), found.out)
    assert words in found.err


@pytest.mark.parametrize("text", ["installed,installed --nonsense", "installed --nonsense,installed"])
def test_an_option_that_nvrtc_refuses_ends_with_2(shell, kernels, text):
    found = shell("compile", "--catalogue", kernels, "--arch", "90", "--toolchains", text)
    assert (2, 1, "") == (found.code, found.err.count("\n"), found.out)
    assert "--toolchains installed --nonsense: NVRTC" in found.err
    assert "unrecognized option --nonsense" in found.err


@pytest.mark.parametrize("text", ["--nonsense", "--ptxas-options=--nonsense", "--nonsense '", *ARCHITECTURES])
@pytest.mark.parametrize("toolchains", [(), ("--toolchains", "installed --maxrregcount=24,installed")])
def test_an_option_of_the_environment_that_nvrtc_refuses_ends_with_2(shell, kernels, monkeypatch, text, toolchains):
    monkeypatch.setenv(NVRTC_OPTIONS, text)
    found = shell("compile", "--catalogue", kernels, "--arch", "90", *toolchains)
    assert (2, 1, "") == (found.code, found.err.count("\n"), found.out)
    assert f"{NVRTC_OPTIONS}: " in found.err


def test_a_header_that_an_option_includes_is_looked_for_next_to_the_kernel(shell, kernels, monkeypatch):
    monkeypatch.setenv(NVRTC_OPTIONS, "--pre-include=before.cuh")
    (kernels / "own" / "before.cuh").write_text("#define BEFORE\n")
    assert 0 == shell("compile", "--catalogue", kernels, "--arch", "90").code


def test_an_option_of_a_spec_that_nvrtc_refuses_is_no_regression(shell, kernels):
    spec = (kernels / "own" / "triple.py").read_text()
    (kernels / "own" / "triple.py").write_text(spec.replace('entry="tripled"', 'entry="tripled", options=("-odd",)'))
    words = ("compile", "--catalogue", kernels, "--arch", "90", "--toolchains", "installed,installed --maxrregcount=24")
    found = shell(*words, "triple")
    assert (2, "") == (found.code, found.out)
    assert "no kernel was compiled by both toolchains" in found.err


@pytest.mark.parametrize(
    ("change", "chosen", "words"),
    [
        (("tolerance=", "odd=1, tolerance="), (), "unexpected keyword argument 'odd'"),
        (("tolerance=", "odd=1, tolerance="), ("triple",), "unexpected keyword argument 'odd'"),
        (("grid=-(-n", "grid=-(-odd"), ("triple",), "no kernel is left to compile: triple[n=1000]: NameError"),
    ],
)
def test_a_broken_spec_ends_with_1_as_it_does_without_toolchains(shell, kernels, change, chosen, words):
    spec = (kernels / "own" / "triple.py").read_text()
    (kernels / "own" / "triple.py").write_text(spec.replace(*change))
    command = ("compile", *chosen, "--catalogue", kernels, "--arch", "90")
    found = shell(*command, "--toolchains", "installed --maxrregcount=64,installed")
    assert (1, 1) == (found.code, shell(*command).code)
    assert words in found.err


def test_a_release_that_cannot_be_fetched_ends_with_2_and_leaves_nothing(shell, kernels, empty_cache):
    found = shell("compile", "--catalogue", kernels, "--toolchains", "9.9,9.8")
    assert (2, 1) == (found.code, found.err.count("\n"))
    assert "--toolchains 9.9: it is not in the cache, and pip does not fetch it: " in found.err
    assert [] == list((empty_cache / "toolchains").iterdir())


def test_a_language_without_kernels_ends_with_2(kernels, monkeypatch):
    pair = (NamedToolchain("triton-3.6.0", "triton"), NamedToolchain("triton-3.7.0", "triton"))
    with pytest.raises(UsageError, match="none of the chosen kernels"):
        compare_toolchains([pair], discover(kernels), (), ("90",))


def test_a_release_is_fetched_once(empty_cache, monkeypatch, tmp_path):
    info = "cuda_toolkit-99.1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "cuda_toolkit-99.1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nvidia/cu99/lib/libnvrtc.so.99", "no library")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: cuda-toolkit\nVersion: 99.1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (toolchain,), reported = named_toolchains("99.1"), []
    folder = opened(toolchain, reported.append).folder
    assert cache_folder("toolchains") == folder.parent
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert folder == opened(toolchain, reported.append).folder
    assert ["fetching 99.1"] == reported


def test_toolchains_are_compared_with_the_one_before_of_their_language():
    text = "12.9,triton-3.6.0,13.0,triton-3.7.0,13.3"
    pairs = [(old.name, new.name) for old, new in paired(named_toolchains(text))]
    assert [("12.9", "13.0"), ("13.0", "13.3"), ("triton-3.6.0", "triton-3.7.0")] == pairs
    assert [("cute-installed", "cute-4.8.0")] == [(a.name, b.name) for a, b in paired(named_toolchains("cute-4.8.0"))]


def test_a_language_is_fetched_with_the_packages_of_its_extra():
    (toolchain,) = named_toolchains("cute-4.8.0")
    assert ["nvidia-cutlass-dsl[cu13]==4.8.0", "nvidia-cuda-cuobjdump>=13.0"] == toolchain.requirements
    assert version("prism-gpu-bench")


def test_outputs_of_what_both_sides_verified_are_compared_by_their_bits(kernels):
    """The null backend launches references, in the processes that launch on a GPU."""
    spec = (kernels / "own" / "triple.py").read_text()
    for name, reference in (("dice", "x + time_ns() % 2**20"), ("broken", "x[:, 0, 0]"), ("wrong", "x")):
        copy(TOYS / "triple.cu", kernels / "own" / f"{name}.cu")
        changed = spec.replace("lambda x: 3 * x", f"lambda x: {reference}")
        (kernels / "own" / f"{name}.py").write_text(changed.replace("\n\n", "\n\nfrom time import time_ns\n", 1))
    catalogue, pair = discover(kernels), (NamedToolchain("a", "cuda"), NamedToolchain("b", "cuda"))
    cases = catalogue.cases(("triple", "dice", "broken", "wrong"), ("S0",))
    judged = {case.name: None if "wrong" in case.name else "of its times" for case in cases}
    rows = [ComparedCase(name, "cold_time", "same", "it is wrong", judgement) for name, judgement in judged.items()]
    bits = compared_bits(pair, catalogue, "null", cases, RecordComparison(("A", "B"), tuple(rows), None))
    found = {case.case.partition("[")[0]: case for case in bits}
    assert ("equal", "varies") == (found["triple"].bits, found["dice"].bits)
    assert ("not run", "not run") == (found["broken"].bits, found["wrong"].bits)
    assert "IndexError" in found["broken"].reason
    assert "it is wrong" == found["wrong"].reason


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--arch", "foo"), "architecture 'foo' is not a number such as 90"),
        (("--arch", "52"), "no kernel was compiled by both toolchains: installed: NVRTC"),
    ],
    ids=["no number", "unknown to both"],
)
def test_what_no_toolchain_can_compile_ends_with_2(shell, toys, words, text):
    found = shell("compile", *toys, *words, "--toolchains", "installed,installed -G")
    assert (2, "") == (found.code, found.out)
    assert text in found.err


@pytest.mark.gpu
def test_changed_kernels_are_launched_and_timed(shell, kernels):
    words = (
        "compile",
        "triple",
        "greedy",
        "--catalogue",
        kernels,
        "--toolchains",
        "installed --maxrregcount=32,installed",
    )
    found = shell(*words, "--json")
    device = found.json[0]["device"]
    assert device["name"]
    assert [("greedy[n=1000]", "equal")] == [(case["case"], case["bits"]) for case in device["bits"]]
    assert "greedy[n=1000]" in {case["case"] for case in device["times"]["cases"]}
