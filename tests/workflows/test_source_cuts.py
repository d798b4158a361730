"""What is cut out of each source of a catalogue, and which are compiled as they are."""

from prism_bench.catalogue import discover
from prism_bench.report.terminal.verification import cut_lines, cuts_json
from prism_bench.workflows.compile_table import kernel_of, launched, source_cuts

SPEC = """
from prism_bench import KernelSpec, Launch, Out, Workload
spec = KernelSpec(source="../../src/{source}", entry="k", arguments=(Out("y", "n"),), launch=lambda: Launch(1, 32),
    reference=lambda n, xp: xp.ones(n), workloads={{"S0": Workload(n=32)}}, compiler="{compiler}")
"""
KERNEL = 'extern "C" __global__ void k(float* y) { y[threadIdx.x] = 1; }\n'
SOURCES = {
    "plain": ("plain.cu", "nvrtc", KERNEL), "cut": ("cut.cu", "nvrtc", f"{KERNEL}int main() {{ k<<<1, 32>>>(0); }}\n"),
    "by_nvcc": ("cut.cu", "nvcc", f"{KERNEL}int main() {{ k<<<1, 32>>>(0); }}\n"), "built": ("lib.so", "nvrtc", "\0"),
    "unclear": ("unclear.cu", "nvrtc", f"{KERNEL}int main() {{ k<<<1, 32>>>(0);\n"),
}  # fmt: skip


def catalogue_of(tmp_path):
    for folder in (tmp_path / "src", tmp_path / "bench" / "family"):
        folder.mkdir(parents=True)
    for name, (source, compiler, text) in SOURCES.items():
        (tmp_path / "src" / source).write_text(text)
        (tmp_path / "bench" / "family" / f"{name}.py").write_text(SPEC.format(source=source, compiler=compiler))
    found = discover(tmp_path / "bench")
    assert () == found.problems
    return found


def test_the_table_of_resources_names_kernels_not_the_files_that_they_share(tmp_path):
    names = {kernel_of(request) for request in launched(catalogue_of(tmp_path))}
    assert {"plain", "cut", "by_nvcc:nvcc", "built:lib.so", "unclear"} == names


def test_each_source_has_what_happens_to_it(tmp_path):
    catalogue = catalogue_of(tmp_path)
    found = {one.kernels: one for one in source_cuts(catalogue)}
    how = {name: found[(name,)].how for name in SOURCES}
    assert {"plain": "whole", "cut": "cut", "by_nvcc": "nvcc", "built": "prebuilt", "unclear": "refused"} == how
    assert [(2, 2, "function main")] == [(cut.first, cut.last, cut.what) for cut in found[("cut",)].cuts]
    assert "unclear.cu:2: cannot separate host code" in found[("unclear",)].meaning
    assert ["cut", 2] == [cuts_json([found[("cut",)]])[0]["how"], cuts_json([found[("cut",)]])[0]["cuts"][0]["first"]]
    assert ["bold", "red"] == [style for _, style in cut_lines([found[("unclear",)]])]
