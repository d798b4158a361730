"""`prism-bench compile`: exit codes, the stored table, JSON, and what is said where there is no compiler."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.compilation import compilers, nvrtc_version
from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install
from prism_bench.record import store
from prism_bench.spec.peer import Library
from prism_bench.workflows.compile_table import ARCHITECTURES, read_table, write_table
from tests.report.synthetic import case_result, record_of

ZOO = Path(__file__).parent.parent / "zoo"
HOPPER = ("--arch", "90")


@pytest.fixture
def nvrtc():
    """Skips, saying what to install, where there is no offline compiler."""
    try:
        return nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_the_toys_compile_for_every_architecture_and_end_with_0(nvrtc, shell, toys):
    found = shell("compile", *toys)
    assert 0 == found.code
    assert "registers (spilled bytes) of 3 kernels" in found.out
    assert all(f"sm_{architecture}" in found.out for architecture in ARCHITECTURES)


def test_json_holds_the_entries_and_nothing_else(nvrtc, shell, toys):
    found = shell("compile", *toys, *HOPPER, "--filter", "double", "--json")
    assert (0, []) == (found.code, found.json["complaints"])
    assert {"doubled", "doubled_by_adding"} == {one["entry"] for one in found.json["entries"]}
    assert {"90"} == {one["architecture"] for one in found.json["entries"]}


def test_growth_against_the_stored_table_ends_with_1_and_is_told(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "reports" / "compile" / "resources.csv"
    assert 0 == shell("compile", *toys, "--write").code
    found = shell("compile", *toys)
    assert (0, True) == (
        found.code,
        found.out.endswith("\nreports/compile/resources.csv: 3 kernels compared, none worse\n"),
    )
    text = table.read_text().splitlines()
    kernel, entry, architecture, _, *rest = text[1].split(",")
    table.write_text("\n".join([text[0], ",".join([kernel, entry, architecture, "1", *rest]), *text[2:]]))
    found = shell("compile", *toys)
    assert 1 == found.code
    assert f"{kernel}: {entry} on sm_{architecture} takes " in found.out
    assert "registers, 1 before" in found.out
    assert found.out.endswith("\nreports/compile/resources.csv: 3 kernels compared, 1 worse\n")


def test_kernels_that_the_stored_table_lacks_are_counted(nvrtc, shell, toys):
    assert 0 == shell("compile", *toys, *HOPPER, "--write", "--filter", "triple").code
    assert "1 kernel compared, none worse; 2 kernels without a comparable row\n" in shell("compile", *toys, *HOPPER).out


def test_an_update_by_a_variants_name_keeps_its_kernels_other_entries(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "resources.csv"
    shell("compile", *toys, *HOPPER, "--against", table, "--write")
    whole = read_table(table)
    assert 0 == shell("compile", *toys, *HOPPER, "--against", table, "--write", "--filter", "double:by_adding").code
    assert whole == read_table(table)


def test_an_update_of_one_architecture_keeps_the_others(nvrtc, shell, toys, tmp_path):
    table = tmp_path / "resources.csv"
    shell("compile", *toys, "--against", table, "--write")
    whole = read_table(table)
    write_table(table, [row for row in whole if row.architecture != "90"])
    assert 0 == shell("compile", *toys, *HOPPER, "--against", table, "--write").code
    assert whole == read_table(table)


def test_a_source_that_does_not_compile_ends_with_1_and_the_others_are_told(nvrtc, shell):
    found = shell("compile", "--catalogue", ZOO, *HOPPER, "--json")
    assert 1 == found.code
    assert ["does_not_compile"] == [one["kernel"] for one in found.json["complaints"]]
    assert "double" in {one["kernel"] for one in found.json["entries"]}


@pytest.mark.parametrize("words", [("--arch", "hopper"), ("--filter", "tripel")])
def test_a_mistake_ends_with_2_and_one_line(shell, toys, words):
    found = shell("compile", *toys, *words)
    assert (2, 1) == (found.code, found.err.count("\n"))
    assert words[1] in found.err


def test_without_a_compiler_it_says_what_to_install(shell, toys, monkeypatch):
    def missing():
        raise BackendUnavailable(compilers.missing())

    monkeypatch.setattr(compilers, "load", missing)
    found = shell("compile", *toys)
    assert 0 != found.code
    assert pip_install("compile") in found.err


def changed(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def committed(kernels):
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")):
        subprocess.run(["git", "-C", kernels.parent, *words], check=True)


@pytest.fixture
def kernels(tmp_path, toys):
    """A copy of the toys in the folder of a project."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(toys[1], tmp_path / "history" / "kernels", ignore=ignored))


@pytest.fixture
def history(kernels):
    """A repository with the toys, whose triple was changed since the only commit."""
    committed(kernels)
    changed(kernels / "arith" / "triple.cu", "3.0f * x[i]", "sqrtf(x[i])")
    (kernels / "arith" / "double.cu").write_text("// a remark\n" + (kernels / "arith" / "double.cu").read_text())
    return "compile", "--catalogue", kernels, *HOPPER, "--against"


def since_head(kernels, *more):
    return "compile", "--catalogue", kernels, *HOPPER, "--against", "HEAD", *more


def test_that_no_kernels_changed_is_said_where_all_were_compiled_and_are_the_same(nvrtc, shell, kernels):
    committed(kernels)
    (kernels / "arith" / "double.cu").write_text("// a remark\n" + (kernels / "arith" / "double.cu").read_text())
    last = "no kernels changed since HEAD: machine code, launches and inputs are the same"
    assert (0, last) == (shell(*since_head(kernels)).code, shell(*since_head(kernels)).out.strip())
    found = shell(*since_head(kernels, "--fail-on-change", "--json"))
    assert (0, last, []) == (found.code, found.json["verdict"], found.json["changes"])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("block=128", "block=64", "launch"),
        ('In("x", "n")', 'In("x", "n", fill=uniform())', "inputs"),
    ],
)
def test_another_launch_or_other_inputs_are_a_change_of_the_same_code(nvrtc, shell, kernels, old, new, reason):
    committed(kernels)
    changed(kernels / "arith" / "triple.py", old, new)
    changed(kernels / "arith" / "triple.py", "Workload, exact", "Workload, exact, uniform")
    found = shell(*since_head(kernels, "--json"))
    (change,) = found.json["changes"]
    assert ("triple", [reason], []) == (change["kernel"], change["reasons"], change["code_difference"])
    assert ["triple[n=1000]", "triple[n=1]"] == change["cases"]
    assert (0, 1) == (found.code, shell(*since_head(kernels, "--fail-on-change")).code)
    printed = shell(*since_head(kernels)).out
    assert f"triple on sm_90: {reason} (triple[n=1000], triple[n=1])" in printed
    assert "no kernels" not in printed
    assert "launch or inputs of 2 cases changed since HEAD, not the code" in printed


@pytest.mark.parametrize("side", ["old", "new", "both"])
def test_a_kernel_that_does_not_compile_on_a_side_is_not_said_to_be_the_same(nvrtc, shell, kernels, side):
    source = kernels / "arith" / "triple.cu"
    good, bad = source.read_text(), source.read_text().replace("const int i", "const integer i")
    source.write_text(good if side == "new" else bad)
    committed(kernels)
    source.write_text(good if side == "old" else bad)
    found = shell(*since_head(kernels, "--json"))
    listed = "uncompared" if side == "old" else "complaints"
    other = "complaints" if side == "old" else "uncompared"
    (complaint,) = found.json[listed]
    assert ("triple", []) == (complaint["kernel"], found.json[other])
    assert 'identifier "integer" is undefined' in complaint["message"]
    assert (0 if side == "old" else 1) == found.code
    assert 1 == shell(*since_head(kernels, "--fail-on-change")).code
    printed = shell(*since_head(kernels)).out
    assert "1 kernel not compared with HEAD: triple" in printed
    assert "no kernels" not in printed


def test_a_launch_that_raises_and_a_spec_that_cannot_be_used_are_not_said_to_be_the_same(nvrtc, shell, kernels):
    committed(kernels)
    changed(kernels / "arith" / "triple.py", "-(-n // 128)", "-(-n // (device.sm_count - 132))")
    changed(kernels / "arith" / "triple.py", "lambda n: Launch", "lambda n, device: Launch")
    changed(kernels / "arith" / "double.py", "spec = ", "gone\nspec = ")
    found = shell(*since_head(kernels, "--json"))
    messages = {one["kernel"]: one["message"] for one in found.json["complaints"]}
    assert {"double", "triple"} == set(messages)
    assert "ZeroDivisionError" in messages["triple"]
    assert (1, True) == (found.code, "2 kernels not compared with HEAD" in found.json["verdict"])


def test_new_and_removed_kernels_are_changes(nvrtc, shell, kernels):
    committed(kernels)
    for suffix in (".cu", ".py"):
        (kernels / "arith" / f"triple{suffix}").rename(kernels / "arith" / f"thrice{suffix}")
    found = shell(*since_head(kernels, "--json"))
    assert {("thrice", "new"), ("triple", "gone")} == {
        (one["kernel"], *one["reasons"]) for one in found.json["changes"]
    }
    assert 0 == found.code
    assert {"triple"} == {one["kernel"] for one in shell(*since_head(kernels, "--json"), "triple").json["changes"]}
    assert (2, True) == ((found := shell(*since_head(kernels), "tripel")).code, "unknown kernel" in found.err)


@pytest.mark.parametrize("word", ["old.csv", "old.json.gz"])
def test_a_table_and_a_record_are_said_to_lack_launches(nvrtc, shell, toys, kernels, word):
    arguments = "compile", "--catalogue", kernels, *HOPPER, "--against", word
    if word == "old.csv":
        assert 0 == shell("compile", *toys, *HOPPER, "--against", word, "--write").code
    else:
        code = {"sass": "of another kernel", "architecture": "sm_90"}
        store.save(record_of(replace(case_result("gone"), name="gone[n=1]", code=code)), Path(word))
    changed(kernels / "arith" / "triple.py", "block=128", "block=64")
    verdict = shell(*arguments, "--json").json["verdict"]
    assert "no kernels" not in verdict
    assert "neither" in verdict
    assert ("nothing to compare" in verdict) == (word == "old.json.gz")


def test_a_bad_launch_and_a_bad_source_cost_their_kernels_and_each_cause_is_printed_once(nvrtc, shell, kernels):
    changed(kernels / "arith" / "triple.py", "lambda n: Launch(grid=-(-n // 128)",
            "lambda n, device: Launch(grid=-(-n // (device.sm_count - 132))")  # fmt: skip
    changed(kernels / "arith" / "double.cu", "2.0f * x[i]", "undeclared * x[i]")
    found = shell("compile", "--catalogue", kernels)
    assert (1, 1, 1) == (found.code, found.out.count("ZeroDivisionError"), found.out.count('"undeclared" is undefined'))
    others = {path.stem for path in kernels.glob("*/*.cu")} - {"double", "triple"}
    assert others
    assert all(name in found.out for name in others)
    assert (1, 2) == (found.code, len(shell("compile", "--catalogue", kernels, "--json").json["complaints"]))


def test_an_entry_that_does_not_compile_leaves_the_others_of_its_source(nvrtc, shell, kernels):
    source = kernels / "arith" / "triple.cu"
    source.write_text(
        "template <int N> __global__ void tripled(const float* x, float* y, int n) {\n"
        '    static_assert(N != 64, "no 64");\n    y[0] = N * x[0];\n}\n'
    )
    changed(kernels / "arith" / "triple.py", "block=128", 'block=128, entry="tripled<64>" if n == 1 else "tripled<3>"')
    changed(kernels / "arith" / "triple.py", 'entry="tripled",', 'entry="tripled<3>",')
    found = shell("compile", "--catalogue", kernels, "triple", "--json")
    (complaint,) = found.json["complaints"]
    assert (1, {"tripled<3>"}) == (found.code, {one["entry"] for one in found.json["entries"]})
    assert "no 64" in complaint["message"]


def test_against_a_commit_exactly_the_changed_kernels_are_reported(nvrtc, shell, history):
    found = shell(*history, "HEAD", "--json")
    (change,) = found.json["changes"]
    assert (0, "triple", "90", []) == (found.code, change["kernel"], change["architecture"], found.json["complaints"])
    (entry,) = change["code_difference"]
    assert ("tripled", True) == (entry["entry"], entry["registers"][0] <= entry["registers"][1])
    assert "machine code of 1 kernel changed since HEAD" in shell(*history, "HEAD").out
    assert 1 == shell(*history, "HEAD", "--fail-on-change").code


def test_against_a_table_the_changed_resources_are_reported(nvrtc, shell, toys, history):
    assert 0 == shell("compile", *toys, *HOPPER, "--against", "old.csv", "--write").code
    found = shell(*history, "old.csv", "--json")
    assert ({"triple"}, 0) == ({one["kernel"] for one in found.json["changes"]}, found.code)


def test_against_a_record_the_changed_cases_are_reported(nvrtc, shell, history):
    code = {"sass": "of another kernel", "architecture": "sm_90", "registers": 300, "spill_bytes": 0,
            "compiler": "NVRTC 1.0"}  # fmt: skip
    case = replace(case_result("triple"), name="triple[n=1000]", code=code)
    path = store.save(record_of(case), Path("old.json.gz"))
    (change,) = shell(*history, path, "--json").json["changes"]
    assert ("triple[n=1000]", 300) == (change["kernel"], change["code_difference"][0]["registers"][0])
    assert "; other machine code: NVRTC 1.0 -> " in change["code_note"]


def test_a_language_that_is_not_installed_is_one_line_and_its_kernels_are_listed(nvrtc, shell, monkeypatch):
    monkeypatch.setattr(Library, "is_installed", lambda self: False)
    languages = Path(__file__).parents[1] / "compilation" / "languages"
    found = shell("compile", "--catalogue", languages / "catalogue", *HOPPER)
    assert (0, 1) == (found.code, found.out.count(f"Triton is not installed ({pip_install('triton', anywhere=True)})"))
    more = shell("compile", "--catalogue", languages / "more", *HOPPER, "--against", "HEAD", "--json")
    left = {one["kernel"]: one["message"] for one in more.json["left_out"]}
    assert {"scaled:cute", "scaled:numba", "scaled:tile", "scaled:warp"} == set(left)
    assert pip_install("tile", anywhere=True) in left["scaled:tile"]


def test_spills_that_grew_end_with_1(nvrtc, shell, history):
    source = history[2] / "arith" / "triple.cu"
    text = source.read_text()
    body = "volatile float a[64]; for (int k = 0; k < 64; ++k) a[k] = x[k]; y[i] = a[n % 64];"
    source.write_text(text.replace("y[i] = sqrtf(x[i]);", f"{{ {body} }}"))
    found = shell(*history, "HEAD", "--json")
    grew = any(one["spills_grew"] for one in found.json["changes"])
    assert int(grew) == found.code


@pytest.mark.parametrize(("word", "problem"), [("nonsense", "no commit of"), ("no.csv", "there is no such table")])
def test_against_nothing_is_one_sentence(shell, history, word, problem):
    found = shell(*history, word)
    assert (2, True) == (found.code, problem in found.err)


def test_only_a_table_is_written(shell, toys):
    found = shell("compile", *toys, "--write", "--against", "HEAD")
    message = "prism-bench: --against HEAD: --write writes a table; name one that ends with .csv\n"
    assert (2, message) == (found.code, found.err)
