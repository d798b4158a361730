"""What other processes send is never unpickled, and workers start in one package only. Read from the sources."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [path for top in ("prism_bench", "suites", "scripts") for path in sorted((ROOT / top).rglob("*.py"))]
PICKLING = ("pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "multiprocessing.connection")
CONNECTIONS = {"Pipe", "Queue", "SimpleQueue", "Manager", "Listener", "Client"}  # of multiprocessing: they unpickle

# Pools exchange pickles. Their processes run our own code, never a kernel's, so that both ends are trusted.
POOLS = {
    "prism_bench/run/precompile.py": "compiles kernels, which it does not run; returns None",
    "prism_bench/record/store/history.py": "reads records; returns tables",
    "scripts/lab/bisect_table.py": "simulates bisections on drawn numbers; returns rows",
    "scripts/lab/emulator_truth.py": "runs this repository's own kernels on the emulator; returns rows",
    "scripts/lab/energy_study.py": "repeats this repository's own kernels and reads the counter; returns rows",
    "scripts/lab/fuzz_processes.py": "asks commands about damaged records; returns rows",
    "scripts/lab/sanitizer_sweep.py": "runs this repository's own kernels on the emulator; returns rows",
    "scripts/lab/strangers.py": "writes specs of the corpus and verifies them in other processes; returns rows",
    "scripts/lab/simulation_table.py": "simulates verdicts on drawn numbers; returns rows",
    "scripts/lab/trend_at_scale.py": "writes planted records; returns None",
    "scripts/lab/trend_simulation.py": "simulates trends on drawn numbers; returns rows",
}
# Who may start a process that goes on while the caller does something else.
STARTS = {
    "prism_bench/io/workers.py": "every worker",
    "prism_bench/extensions/judge/jail/namespaces.py": "what a jail holds, by a worker that becomes it",
    "prism_bench/extensions/judge/jail/confined.py": "a jailed worker's own program, in its place",
    "prism_bench/extensions/ci/raw_samples.py": "parts of a nightly run, whose records and logs are read",
    "prism_bench/profilers/tools.py": "profilers, which are other programs and start ours themselves",
    "scripts/lab/persistent_study.py": "the tests of the executor, killed at a time limit",
    "scripts/lab/store_at_scale.py": "whole commands, each of whose memory is measured",
    "scripts/lab/soak.py": "whole commands, which are interrupted and killed to see what they leave behind",
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all imports, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def called(tree: ast.AST) -> Iterator[str]:
    """The last name of everything that is called: `Popen` for `subprocess.Popen(...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            yield function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_pickling(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in PICKLING)


def faults(text: str) -> list[str]:
    """What in a module could unpickle what another process sent."""
    tree = ast.parse(text)
    names = list(imported(tree))
    found = [f"imports {name}" for name in names if is_pickling(name)]
    if any(name.split(".")[0] == "multiprocessing" for name in names):
        within_a_process = {name.rpartition(".")[2] for name in names if name.startswith("queue.")}
        found += [f"calls {name}" for name in called(tree) if name in CONNECTIONS - within_a_process]
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            allowed = not (isinstance(node.value, ast.Constant) and node.value.value is False)
            found += ["allows pickles in a file of NumPy's"] if allowed else []
    return found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import pickle", "imports pickle"),
        ("from multiprocessing.connection import Connection", "imports multiprocessing.connection.Connection"),
        ("def f():\n    import marshal", "imports marshal"),
        ("import multiprocessing\na, b = multiprocessing.Pipe()", "calls Pipe"),
        ("import numpy\nnumpy.load(x, allow_pickle=True)", "allows pickles in a file of NumPy's"),
    ],
)
def test_what_unpickles_is_found(text, fault):
    assert [fault] == faults(text)


def test_nothing_that_another_process_sends_is_unpickled():
    assert len(SOURCES) > 200
    found = {name_of(path): faults(path.read_text()) for path in SOURCES}
    assert {} == {name: one for name, one in found.items() if one}


def test_pools_are_those_whose_processes_run_only_our_code():
    pools = {"ProcessPoolExecutor", "get_context", "Pool"}
    found = {name_of(path) for path in SOURCES if pools & set(called(ast.parse(path.read_text())))}
    assert set(POOLS) == found


def test_workers_start_in_one_place():
    starts = {"Popen", "fork", "forkpty", "posix_spawn", "spawnv", "spawnl", "execv", "execve"}
    found = {name_of(path) for path in SOURCES if starts & set(called(ast.parse(path.read_text())))}
    assert set(STARTS) == found
