"""What a card may hold, and what it is refused for."""

from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError, SpecError, UsageError
from prism_bench.extensions.judge.submission import CardExpression, judged_spec, read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Launch, TensorMap, Zero

HERE = Path(__file__).parent
LAUNCH = 'entry = "attack"\ngrid = "ceil_div(n, 256)"\nblock = 256\narguments = ["a", "b", "c", "n"]\n'
HONEST = (HERE / "museum" / "honest.cu").read_text()


def written(folder: Path, text: str, source: str = "__global__ void attack() {}") -> Path:
    folder.joinpath("mine.cu").write_text(source)
    folder.joinpath("mine.toml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("n", 10),
        ("-n + 3 * 4", 2),
        ("ceil_div(n, 4)", 3),
        ("n // 4 + n % 4", 4),
        ("min(n, 3, 5)", 3),
        ("max(n, 3)", 10),
        ("next_power_of_2(n)", 16),
        ("1 if n > 9 else 2", 1),
        ("n > 9 and not n == 10", 0),
        ("n < 3 or n >= 10", 1),
        ("kind == 'clipped' and n > 1", 1),
        ("kind != 'clipped'", 0),
    ],
)
def test_an_expression_is_calculated(text: str, value: int) -> None:
    assert CardExpression(text).value({"n": 10, "kind": "clipped"}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "n.bit_length()",
        "[n][0]",
        "(lambda: n)()",
        "n ** n",
        "'a'",
        "n < 'a'",
        "'a' == n",
        "1.5",
        "n if n",
        "min(n)",
        "ceil_div(n)",
        "1 < n < 3",
        "f'{n}'",
        "n << 99",
        "(" * 300 + "n" + ")" * 300,
        "1" * 600,
        "min = 3",
        "",
    ],
)
def test_an_expression_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        CardExpression(text).value({"n": 10})


@pytest.mark.parametrize(
    ("text", "value"), [("groups == 1", 0), ("groups != 1", 1), ("groups == 'auto'", 1), ("n == 10 and groups == 2", 0)]
)
def test_a_text_is_no_number(text: str, value: int) -> None:
    """A choice may be a number in one case and a word in another."""
    assert CardExpression(text).value({"n": 10, "groups": "auto"}) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("groups < 1", "no whole number"),
        ("n // 0", "divides by 0"),
        ("m + 1", "asks for 'm'"),
        (" * ".join(["n"] * 70), "too large"),
        ("f + 1", "no whole number"),
    ],
)
def test_an_expression_without_a_value_names_the_reason(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        CardExpression(text).value({"n": 10, "f": 0.5, "groups": "auto"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source = 'mine.cu'\n", "missing required field `launch`"),
        (f"[[launch]]\n{LAUNCH}", "a source or a cubin"),
        (f"source = 'mine.cu'\ncubin = 'mine.cu'\n[[launch]]\n{LAUNCH}", "a source or a cubin"),
        (f"source = '../mine.cu'\n[[launch]]\n{LAUNCH}", "not in the card's folder"),
        (f"source = '/etc/passwd'\n[[launch]]\n{LAUNCH}", "not in the card's folder"),
        (f"source = 'other.cu'\n[[launch]]\n{LAUNCH}", "no file other.cu"),
        (f"source = 'mine.cu'\nhook = 'x'\n[[launch]]\n{LAUNCH}", "unknown field `hook`"),
        ("source = 'mine.cu'\n[[launch]]\ngrid = 1\n", "an entry, or a buffer to zero"),
        ("source = 'mine.cu'\n[[launch]]\nentry = 'a'\ngrid = [1, 1, 1, 1]\n", "one to three"),
        ("source = 'mine.cu'\n[[launch]]\nentry = 'a'\ngrid = 'open(n)'\n", "nothing that an expression of a card has"),
        ("source = 'mine.cu'\n[[launch]]\nentry = 'a<{n.x}>'\n", "nothing that an expression of a card has"),
        ("source = 'mine.cu'\nlaunch = []\n", "0 launches"),
        ("source = ", "Invalid"),
        (f"options = {'[' * 5000}{']' * 5000}\nsource = 'mine.cu'\n[[launch]]\n{LAUNCH}", "lists within lists"),
        (f"source = 'mine.cu'\n[[launch]]\nentry = 'a'\ngrid = {'9' * 5000}\n", "digits"),
        (f"source = 'mine.cu'\n[[launch]]\nentry = 'a'\ngrid = '{'-' * 490}1'\n", "more than 200 parts within parts"),
        (f'source = "a\\u0000.cu"\n[[launch]]\n{LAUNCH}', "null"),
        (f"source = '{'x' * 5000}.cu'\n[[launch]]\n{LAUNCH}", "too long"),
        (f"source = 'mine.cu'\n[[launch]]\n{LAUNCH}#{'x' * (1 << 20)}", "at most 1,048,576"),
    ],
    ids=lambda text: text[-40:],
)
def test_a_card_that_cannot_be_taken_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SpecError, match="mine.toml: .*" + words):
        read_submission(written(tmp_path, text))


def test_a_terminal_obeys_no_name_of_a_card(tmp_path: Path) -> None:
    for name in ("one.toml", "two\x1b]0;words\x07.toml"):
        (tmp_path / name).write_text("")
    with pytest.raises(UsageError) as caught:
        read_submission(tmp_path)
    assert str(caught.value).endswith("here are one.toml, two ]0;words .toml")


def test_a_folder_has_one_card(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="here are none"):
        read_submission(tmp_path)


def test_a_source_that_is_too_large_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, f"source = 'mine.cu'\n[[launch]]\n{LAUNCH}", "/" * (5 << 20))
    with pytest.raises(SpecError, match="at most 4,194,304"):
        read_submission(folder)


def test_a_card_launches_by_its_expressions(tmp_path: Path) -> None:
    card = """
source = "mine.cu"
[sizes.parts]
value = "ceil_div(n, 1000)"
[scratch.sums]
shape = ["parts", "2"]
dtype = "float64"
[[launch]]
zero = "sums"
[[launch]]
entry = "attack<{64 if n > 99 else 32}>"
grid = ["parts", "sm_count"]
block = 64
arguments = ["a", "sums", "parts"]
when = "n > 1"
[[launch]]
entry = "never"
when = "n > 100000"
"""
    task = discover(HERE / "tasks").kernel("add")
    spec = judged_spec(task, read_submission(written(tmp_path, card)))
    case = Case(spec, task.workloads["S0"], "S0")
    zero, step = case.plan.steps(Device(sm_count=7))
    assert zero == Zero("sums")
    assert step == Launch((3, 7), (64,), 0, "attack<64>", ("a", "sums", "parts"))
    assert case.sizes.shape("sums") == (3, 2)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[sizes.n]\nvalue = 1\n", "'n' is a name of the task"),
        ("[scratch.c]\nshape = [1]\n", "'c' is a name of the task"),
        ("[sizes.k]\nvalue = 1\ndtype = 'object'\n", "type of 'k'"),
        ("[scratch.k]\nshape = [1]\ndtype = 'U9'\n", "type of 'k'"),
        (f"[scratch.k]\nshape = {[1] * 9}\n", "9 extents; at most 8"),
        ("[[launch]]\nentry = 'x'\narguments = ['d']\n", "'d'"),
        ("[[launch]]\nzero = 'n'\n", "'n'"),
        ("maps = [{ argument = 'n' }]\n", "array that 'attack' takes"),
        ("maps = [{ argument = 'd' }]\n", "array that 'attack' takes"),
        ("[[launch]]\nentry = 'x'\narguments = ['b']\nmaps = [{ argument = 'a' }]\n", "'x' takes 'a'.*: b"),
    ],
)
def test_a_card_that_does_not_fit_its_task_is_refused(tmp_path: Path, more: str, words: str) -> None:
    task = discover(HERE / "tasks").kernel("add")
    folder = written(tmp_path, f"source = 'mine.cu'\n[[launch]]\n{LAUNCH}{more}")
    with pytest.raises(PrismBenchError, match=words):
        judged_spec(task, read_submission(folder))


def test_scratch_beyond_a_machines_memory_is_refused_before_it_is_taken(tmp_path: Path) -> None:
    """Buffers of the emulator are in the judge's own process."""
    tasks = discover(HERE / "tasks")
    task = JudgeTask(tasks.kernel("add"), tasks)

    def verdict(shape: str) -> JudgeVerdict:
        card = f"source = 'mine.cu'\n[[launch]]\n{LAUNCH}when = 'n > 0'\n[scratch.k]\nshape = {shape}\n"
        return SubmissionTrial(read_submission(written(tmp_path, card, HONEST)), task, jailed=False).verdict()

    (objection,) = verdict("[1073741824, 1073741824]").objections
    assert ("card", True) == (objection.rule, "scratch of" in objection.text)
    (objection,) = verdict("[500000000]").objections
    assert ("outputs", True) == (objection.rule, "scratch of 2.00 GB; at most 1.07 GB" in objection.text)


def test_a_card_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    with pytest.raises(SpecError, match="no ordinary file"):
        read_submission(tmp_path / "endless.toml")
    with pytest.raises(UsageError, match="No such file"):
        read_submission(tmp_path / "missing.toml")


def test_a_card_passes_arrays_as_tensor_maps(tmp_path: Path) -> None:
    lines, box = "{ argument = 'a', lines = 'ceil_div(n, 100)', tf32 = true }", "{ argument = 'c', box = [8, 'n % 7'] }"
    card = f"source = 'mine.cu'\n[[launch]]\n{LAUNCH}maps = [{lines}, {box}]\n"
    task = discover(HERE / "tasks").kernel("add")
    spec = judged_spec(task, read_submission(written(tmp_path, card)))
    (step,) = Case(spec, task.workloads["S0"], "S0").plan.steps(Device())
    assert isinstance(step, Launch)
    assert (TensorMap("a", 30, tf32=True), TensorMap("c", box=(8, 4))) == step.maps


@pytest.mark.parametrize(
    ("one", "words"), [("lines = 257", "1 to 256 lines, not 257"), ("box = [4, 'n']", "1 to 256 elements"),
                       ("lines = 'open(n)'", "nothing that an expression"), ("swizzle = 1", "unknown field")],
)  # fmt: skip
def test_a_tensor_map_that_none_can_be_is_refused(tmp_path: Path, one: str, words: str) -> None:
    task = discover(HERE / "tasks").kernel("add")
    maps = f"maps = [{{ argument = 'a', {one} }}]\n"
    with pytest.raises(SpecError, match=words):
        spec = judged_spec(task, read_submission(written(tmp_path, f"source = 'mine.cu'\n[[launch]]\n{LAUNCH}{maps}")))
        Case(spec, task.workloads["S0"], "S0").plan.steps(Device())


def test_python_makes_its_own_tensor_maps(tmp_path: Path) -> None:
    task = discover(HERE / "tasks").kernel("add")
    folder = written(tmp_path, f"source = 'mine.triton.py'\n[[launch]]\n{LAUNCH}maps = [{{ argument = 'a' }}]\n")
    (folder / "mine.triton.py").touch()
    with pytest.raises(SpecError, match="tensor maps are for CUDA C"):
        judged_spec(task, read_submission(folder))


@pytest.mark.parametrize("grid", ["99999999999", "-1", "0 - n"])
def test_a_grid_that_no_device_launches_is_refused(tmp_path: Path, grid: str) -> None:
    task = discover(HERE / "tasks").kernel("add")
    card = f"source = 'mine.cu'\n[[launch]]\nentry = 'attack'\ngrid = '{grid}'\nblock = 1\n"
    spec = judged_spec(task, read_submission(written(tmp_path, card)))
    with pytest.raises(SpecError) as error:
        Case(spec, task.workloads["S0"], "S0").plan.steps(Device())
    assert str(error.value).endswith("(in the card)")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{'a.' * 300}a = 1", "a line has more than 200 dots"),
        (f"[{'a.' * 300}a]", "a line has more than 200 dots"),
        ("".join(f"[sizes.n{number}]\nvalue = 1\n" for number in range(300)), "300 sizes; a card has at most 256"),
        ("".join(f"[scratch.n{number}]\nshape = [1]\n" for number in range(300)), "300 scratch buffers"),
        (f'[[launch]]\nentry = "k<{"{1}" * 2000}>"', "an entry of 6,003 characters; at most 4000"),
    ],
)
def test_a_card_that_takes_hours_to_read_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.cu").write_text("")
    (tmp_path / "card.toml").write_text(f'source = "mine.cu"\n[[launch]]\nentry = "mine"\n{text}\n')
    with pytest.raises(SpecError, match=words):
        read_submission(tmp_path)


def test_links_out_of_the_folder_and_in_a_circle_are_refused(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside.toml", tmp_path / "sent"
    outside.write_text('password = "42"\n')
    inside.mkdir()
    card = inside / "card.toml"
    card.symlink_to(outside)
    with pytest.raises(SpecError, match="a link to a file in another folder"):
        read_submission(card)
    card.unlink()
    card.write_text('source = "mine.cu"\n[[launch]]\nentry = "mine"\n')
    (inside / "mine.cu").symlink_to("mine.cu")
    with pytest.raises(SpecError, match="symbolic links"):
        read_submission(card)
    (inside / "mine.cu").unlink()
    (inside / "other.cu").write_text("")
    (inside / "mine.cu").symlink_to("other.cu")
    assert "card" == read_submission(card).name, "a link within the folder is one"
