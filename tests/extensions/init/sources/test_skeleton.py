"""Skeletons of specs: they load if launch and types were read, and mark every guess."""

import re
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.extensions.init.sources.skeleton import scan, skeleton

PROJECT = Path(__file__).parent / "project"


def catalogue_of(tmp_path, source):
    """Return the catalogue of the skeletons of a source's kernels, and the skeletons."""
    family = tmp_path / "bench" / "found"
    family.mkdir(parents=True)
    made = [skeleton(kernel, f"../../{source.name}") for kernel in scan(source).kernels]
    for spec in made:
        (family / spec.file_name).write_text(spec.text)
    return discover(tmp_path / "bench"), made


def written(tmp_path, text):
    source = tmp_path / "k.cu"
    source.write_text(text)
    return catalogue_of(tmp_path, source)


def test_skeletons_of_a_project_load_in_a_catalogue(tmp_path):
    (tmp_path / "softmax.cu").write_text((PROJECT / "src" / "softmax.cu").read_text())
    catalogue, made = catalogue_of(tmp_path, tmp_path / "softmax.cu")
    assert ((), {"softmax_kernel1", "softmax_kernel2"}) == (catalogue.problems, set(catalogue.kernels))
    assert all(spec.loads and "the reference" in spec.open_points for spec in made)
    spec = catalogue.kernel("softmax_kernel2")
    assert ("fast::softmax_kernel2<float, 8>", tmp_path / "softmax.cu") == (spec.entry, spec.source)
    assert 2 * len(spec.workloads) == len(catalogue.cases())


def test_a_triton_kernel_gets_a_spec_that_names_its_file_and_constants(tmp_path):
    (tmp_path / "add.py").write_text((PROJECT / "src" / "add.py").read_text())
    catalogue, (made,) = catalogue_of(tmp_path, tmp_path / "add.py")
    assert ((), True) == (catalogue.problems, made.loads)
    spec = catalogue.kernel("add_kernel")
    assert ("triton", tmp_path / "add.py", {"block": 1024}) == (spec.language, spec.source, spec.parameters)
    launch = spec.launch(n=3000, block=1024)
    assert (3, {"block": 1024}) == (launch.grid, launch.constants)


ODD = """
__global__ void odd(const float* in, float* xp, size_t lambda, float alpha, bool flag = false) {
    if (threadIdx.x < lambda) xp[threadIdx.x] = in[threadIdx.x];
}
void run(float* a, float* b, size_t n) { odd<<<(n + 31) / 32, 32>>>(a, b, n, 2.0f, false); }
"""


def test_names_that_python_reserves_get_an_underscore(tmp_path):
    catalogue, _ = written(tmp_path, ODD)
    assert () == catalogue.problems
    spec = catalogue.kernel("odd")
    assert ["in_", "xp_", "lambda_", "alpha", "flag"] == [argument.name for argument in spec.arguments]
    assert {"alpha": 2.0, "flag": False} == spec.parameters


def test_every_guess_is_marked_and_named_as_an_open_point(tmp_path):
    _, (made,) = written(tmp_path, ODD)
    marked = re.findall(r"^.*# guess: confirm.*$", made.text, re.MULTILINE)
    assert 6 == len([line for line in marked if "'# guess" not in line])  # two buffers, two values, two workloads
    assert 3 == len(made.open_points)


def test_a_type_without_a_value_is_float_and_marked(tmp_path):
    text = (
        "template <class T> __global__ void k(T* y) { y[0] = 0; }\n"
        "template <class T> void r(T* y) { k<T><<<1, 1>>>(y); }"
    )
    catalogue, (made,) = written(tmp_path, text)
    assert ((), "k<float>") == (catalogue.problems, catalogue.kernel("k").entry)
    assert 'entry="k<float>" # guess: confirm T: no launch here names a type' in made.open_points


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__global__ void k(float* y) { y[0] = 0; }", "the launch: no file here launches it"),
        ("__global__ void k(P p) {}\nvoid r(P p) { k<<<1, 1>>>(p); }", "p has type P"),
        ("template <int N> __global__ void k(float* y) { y[0] = N; }\n"
         "template <int N> void r(float* y) { k<N><<<1, 1>>>(y); }",
         "template argument N: no launch here gives a value"),
        ("__global__ void k(float* y) {}\nvoid r(float* y) { k<<<f(y), 1>>>(y); }", "'f(y)' is a call"),
        ("__global__ void k(const float* y) {}\nvoid r(float* y) { k<<<1, 1>>>(y); }", "k.cu:1: no output"),
    ],
)  # fmt: skip
def test_missing_parts_of_a_spec_are_open_points(tmp_path, text, reason):
    source = tmp_path / "k.cu"
    source.write_text(text)
    made = skeleton(scan(source).kernels[0], "k.cu")
    assert not made.loads
    assert any(reason in point for point in made.open_points)
    assert reason in made.text
    compile(made.text, "k.py", "exec")


INJECTED = """
template <typename T, int N> __global__ void {name}(T* out, int n) {{
    if (threadIdx.x < n) out[threadIdx.x] = N;
}}
void run(float* out, int n) {{ {name}<{arguments}><<<1, {block}>>>(out, n); }}
"""
HOSTILE = [
    {"arguments": 'float, sizeof("\\", launch=print(1), entry=\\"")'},
    {"arguments": 'float, sizeof(R"(",\nopen("planted", "w")\n)")'},
    {"arguments": "float, 1", "block": '"""\nopen("planted", "w")\n"""'},
    {"arguments": "float, 1", "block": 'R"(\nopen("planted", "w")\n)"[0]'},
]


@pytest.mark.parametrize("parts", HOSTILE)
def test_text_of_a_source_never_becomes_a_statement_of_a_spec(tmp_path, monkeypatch, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cu").write_text(INJECTED.format(**{"name": "copy", "block": 32, **parts}))
    for made in (skeleton(kernel, "../../k.cu") for kernel in scan(tmp_path / "k.cu").kernels):
        if made.loads:
            family = tmp_path / "bench" / "found"
            family.mkdir(parents=True)
            (family / made.file_name).write_text(made.text)
            discover(tmp_path / "bench")
    assert not (tmp_path / "planted").exists()


def test_a_path_with_quotes_is_a_draft(tmp_path):
    (tmp_path / "k.cu").write_text(INJECTED.format(name="copy", block=32, arguments="float, 1"))
    (kernel,) = scan(tmp_path / "k.cu").kernels
    assert [True, False] == [
        skeleton(kernel, source).loads for source in ("k.cu", 'k", launch=open("planted"), x=".cu')
    ]
