"""`prism-bench list`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_kernels_are_listed_a_line_each_and_all_cases_on_request(shell, toys):
    found = shell("list", *toys)
    assert 0 == found.code
    assert "3 kernels, 1 variant, 1 language, 6 cases, 4 edges" == found.out.splitlines()[-1]
    (double,) = (line for line in found.out.splitlines() if " double " in line)
    assert "by_adding" in double
    assert "S0 S1" in double
    every = shell("list", *toys, "--all").out
    for words in ("double:by_adding", "triple", "blocks=1", "n=100000", "8.00 kB"):
        assert words in every
    assert "n=1000" not in found.out


def test_the_name_and_the_label_of_a_case_stay_at_80_columns(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = shell("list", "active_inference_chain").out.splitlines()
    assert {True} == {len(line) <= 80 for line in lines}
    rows = [line for line in lines if line.startswith("│")]
    names, labels = ({row.split("│")[place].strip() for row in rows} for place in (1, 2))
    assert {"active_inference_chain:full", "active_inferenc…hain:f64_partial"} < names
    assert {"S0", "S1", "S2"} == labels
    shortened = [line for line in shell("list").out.splitlines() if "  active_inference_chain " in line]
    assert 1 == len(shortened)


def test_json_is_one_document_with_every_case(shell, toys):
    found = shell("list", *toys, "--json").json
    assert 6 == len(found)
    case = next(one for one in found if one["name"] == "double[n=1000]")
    assert ("double", None, "arith", "S0", {"n": 1000}, 8000, 1000, ["twice"], [], 3) == tuple(
        case[key]
        for key in ("kernel", "variant", "family", "label", "workload", "bytes", "flops", "aliases", "peers", "edges")
    )


def test_filters_and_labels_choose(shell, toys):
    found = shell("list", *toys, "--json", "-f", "twice", "-f", "machine", "-l", "S0").json
    assert ["double[n=1000]", "double:by_adding[n=1000]", "nothing[blocks=1]"] == [case["name"] for case in found]


def test_a_problem_is_said_beside_the_rest_and_ends_with_1(shell, toys, tmp_path):
    mine = shutil.copytree(toys[1], tmp_path / "mine")
    (mine / "arith" / "triple.py").write_text("from prism_bench import KernelSpec\nspec = nonsense\n")
    found = shell("list", "--catalogue", mine, "--json")
    assert 1 == found.code
    assert {"double", "nothing"} == {case["kernel"] for case in found.json}
    assert f"catalogue {mine / 'arith' / 'triple.py'}: line 2: NameError: name 'nonsense' is not defined\n" == found.err


def test_the_built_in_catalogue_is_listed_from_any_folder(shell):
    found = shell("list", "--json", "--filter", "vector_add")
    assert {"vector_add"} == {case["kernel"] for case in found.json}


def test_forms_of_before_name_what_replaces_them(shell):
    chosen = ("list", "--filter", "vector_add_batch", "--label", "S1")
    before = {(case["kernel"], case["variant"]): case["before"] for case in shell(*chosen, "--json").json}
    assert {("vector_add_batch", None): "vector_add_batch:full", ("vector_add_batch", "full"): None} == before
    assert "(before" in shell(*chosen).out


def test_listing_all_kernels_imports_no_compiler():
    script = (
        "import sys\n"
        "from prism_bench.cli import main\n"
        "sys.argv = ['prism-bench', 'list']\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    where = {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, **where)
    modules = done.stderr.splitlines()[-1].split()
    assert not {module.partition(".")[0] for module in modules} & {"triton", "torch", "cutlass", "numba", "warp"}
    assert "prism_bench.cli" in modules and "cuda.tile" not in modules


def test_kernels_that_the_emulator_does_not_run_are_named_with_what_it_lacks(shell, tmp_path):
    folder = tmp_path / "mine" / "arith"
    shutil.copytree(ROOT / "tests/toys/arith", folder)
    source = folder / "triple.cu"
    plain = shell("list", "--catalogue", folder.parent)
    assert "not emulated" not in plain.out
    lines = {"asm volatile(\"bar.sync 0;\");": None, "asm volatile(\"membar.gl;\");": "inline PTX",
             "auto c = cg::this_cluster();": "thread block clusters"}  # fmt: skip
    kernel = source.read_text()
    for line, reason in lines.items():
        source.write_text(f"{kernel}__device__ void more() {{ {line} }}\n")
        found = shell("list", "--catalogue", folder.parent)
        notes = [shown for shown in found.out.splitlines() if shown.startswith("not emulated")]
        assert [f"not emulated: {reason}: triple"] * bool(reason) == notes
        assert 0 == found.code
        assert "not emulated" not in shell("list", "--catalogue", folder.parent, "--json").out
