"""Every command with paths that are missing, of another kind, damaged or unreadable: a line, code 2, no traceback.

Commands and their options are read off the Typer app, so that a new one is tried as well.
"""

import inspect
import sys
from pathlib import Path
from typing import get_args

import pytest
from typer.main import get_command
from typer.models import ArgumentInfo

from prism_bench.cli import app
from tests.cli.conftest import TOYS

# Options whose file or folder must be there; whatever else takes a path may make it.
SOURCES = (
    "catalogue", "source", "record", "results", "parts", "trace", "a", "b", "latencies", "counters", "sample",
    "comparison",
)  # fmt: skip
# What keeps a command small that begins to work before it looks at the option.
SMALL = {
    "backend": ("--backend", "null"), "filter": ("--filter", "double"), "label": ("--label", "S0"),
    "processes": ("--processes", "1"), "peers": ("--no-peers",), "catalogue": ("--catalogue", TOYS),
    "seconds": ("--seconds", "0"),
    "since": ("--since", "7d"),
}  # fmt: skip
OF_SOURCE = ("fuse", "timeline")  # these run a kernel's source, which the null backend does not
# Forms of a command that take the option, where not all do or where they read it differently.
FORMS = {
    ("trend", "catalogue"): ("trend --boards",), ("fuse", "catalogue"): ("fuse", "fuse --write"),
    ("check", "output"): ("check --accept",), ("store", "parts"): ("store merge",),
    ("store", "output"): ("store merge",),
    ("profile", "output"): ("profile double",), ("claim", "output"): ("claim double",),
    ("store", "runs"): ("store verify", "store merge"),
}  # fmt: skip
# Reads the built-in catalogue each time, a second: two kinds of what is wrong, which the same reader refuses elsewhere.
FEW = {"fuse": ("missing", "binary.json.gz")}
UNREADABLE = Path("/proc/self/mem")  # opens, and gives no byte, also to root
DAMAGED = ("binary.json.gz", "binary.json", "binary.csv", "binary.sqlite", "empty.json.gz", "empty.npz")


def options_of(command):
    """By name: what Typer knows of the option or argument, and whether it takes a path."""
    found = {}
    for name, parameter in inspect.signature(command.callback).parameters.items():
        kind, info, *_ = get_args(parameter.annotation)
        inner = {kind, *get_args(kind)} | {deep for one in get_args(kind) for deep in get_args(one)}
        found[name] = info, Path in inner or (command.name == "compare" and name in ("a", "b"))
    return found


FLAGS = {
    name: {parameter.name: parameter.opts[0] for parameter in command.params}
    for name, command in get_command(app).commands.items()
}
COMMANDS = {command.name: command for command in app.registered_commands}
PATHS = [
    (line, option)
    for name in COMMANDS
    for option, (_, path) in options_of(COMMANDS[name]).items()
    for line in (FORMS.get((name, option), (name,)) if path else ())
]


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """The paths by what is wrong with them; no device is asked, so that nothing watches one for ever."""
    for library in ("pynvml", "cupy"):
        monkeypatch.setitem(sys.modules, library, None)
    folder = tmp_path / "hostile"
    (folder / "folder").mkdir(parents=True)
    (folder / "file").write_bytes(b"")
    for name in DAMAGED:
        binary = b"\x1f\x8b\x00\xff\xfe" + bytes(range(256)) * 4
        (folder / name).write_bytes(binary if name.startswith("binary") else b"")
    paths = {"missing": folder / "missing", "below a file": folder / "file" / "x"}
    paths |= {name: folder / name for name in DAMAGED}
    return paths | {"a folder": folder / "folder", **({"unreadable": UNREADABLE} if UNREADABLE.exists() else {})}


def words_for(line, option, path):
    """The command line that gives the path to the option, and to every argument that the command cannot do without."""
    words = line.split()
    command, form = COMMANDS[words[0]], words[1:]
    options = options_of(command)
    for name, (info, _) in options.items():
        if isinstance(info, ArgumentInfo):
            is_needed = info.default is ... and not form and name != "comparison"
            words += [path] if name == option or is_needed else []
        elif name == option:
            words += [FLAGS[command.name][name], path]
        elif name in SMALL and not form and (command.name, name) not in FORMS and option != "comparison":
            # The toys make no chain, and with a comparison 'comment' takes nothing of a digest.
            words += ("--backend", "emulator") if name == "backend" and command.name in OF_SOURCE else SMALL[name]
    return [*words, *(("--output", "samples.csv") if (command.name, option) == ("export", "record") else ())]


@pytest.mark.parametrize(("line", "option"), PATHS, ids=lambda word: word)
def test_a_path_that_is_none_never_ends_in_a_traceback(shell, hostile, line, option):
    for kind in FEW.get(line, hostile) if option in SOURCES else ("below a file",):
        path = hostile[kind]
        found = shell(*words_for(line, option, path))
        said = f"{line} --{option} of {kind} ({path}): {found.code}\n{found.err}"
        assert found.code in (0, 1, 2, 3), said
        assert "Traceback" not in found.err + found.out, said
        ours = [line for line in found.err.splitlines() if line.startswith("prism-bench: ")]
        assert found.code != 2 or len(ours) == 1 or "Usage:" in found.err or found.out or line == "import", said
        if option in SOURCES and kind not in ("a folder", "unreadable"):
            assert 2 == found.code, said
            assert any(word in found.err for word in (str(path), "CuPy", "NVML", "nvidia-ml-py", "NVIDIA driver")), said


@pytest.mark.parametrize("line", [*(line for line, option in PATHS if option == "output"), "export --format asv"])
def test_an_output_below_a_file_is_refused_before_the_work(shell, hostile, line):
    for ending in ("", ".json", ".csv", ".png", ".md", ".html", ".toml"):
        path = hostile["below a file"].with_suffix(ending)
        answer = shell(*words_for(line, "output", path))
        assert (2, 1) == (answer.code, answer.err.count("prism-bench: ")), answer.err
        if any(f"prism-bench: {word}" in answer.err for word in (f"--output {path}: its ending", "unknown format")):
            continue
        assert f"prism-bench: --output {path}: {path.parent} is no folder\n" in answer.err
        return
    pytest.fail(f"{line} writes none of the endings")


def test_a_folder_of_verdicts_below_a_file_is_refused_before_the_work(shell, hostile):
    answer = shell("judge", hostile["a folder"], "double", "--catalogue", TOYS, "--output", hostile["below a file"])
    assert (2, f"prism-bench: --output {hostile['below a file']}: {hostile['below a file'].parent} is no folder\n") == (
        answer.code,
        answer.err,
    )
