"""The house as planned: who may import whom, what stays light, how large things may grow. Read from the sources."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parent.parent
PACKAGE = HOUSE / "prism_bench"
SOURCES = sorted(path for top in ("prism_bench", "suites", "tests") for path in (HOUSE / top).rglob("*.py"))
OURS = [path for path in SOURCES if "tests" not in path.relative_to(HOUSE).parts]

# A room imports only from floors below its own; rooms on one floor do not know each other. Nouns are one room.
NOUNS = """
    evidence metric workload budget kernel case measurement run_record inputs tolerance arguments byname files tune
    case_sizes correctness host_plan card instance called spec_modules spec_views mangling toolchain cycles naming
    project precision scene extension moved identity entry strict_json domain originals documents record_schema
    record_ranges record_check foreign_files array_types launch rule spec_parts variant raw_source boards deviation
    interrupts saving temporaries locks regimes libraries peer peer_cache notebook record_samples result_views extras
    visible_gpu installation""".split()
FLOORS = [
    ["errors", "units"],
    NOUNS,
    ["alerts", "forges", "workers", "sources"],
    ["compilation"],
    ["languages"],
    ["catalogue", "measure", "monitor", "profilers", "emulator", "store"],
    ["backends", "exchange"],
    ["run", "tuning", "doctor"],
    ["fleet", "scaffold"],
    ["analysis"],
    ["studies", "api"],
    ["report"],
    ["options"],
    ["extensions"],
    ["cli", "suites", "pytest_plugin"],
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# A backend is the thin layer between a case and one of these two.
STANDS_ON = {("backends", "emulator"), ("backends", "compilation")}
# The facade and the entry point are doors, not rooms: `import prism_bench` is held to account by what it loads.
DOORS = ("__init__", "__main__")

# Outside packages and the only places that may name them.
OUTSIDE = {
    "numpy": ["arguments", "array_types", "precision", "scene", "store", "case_sizes", "correctness", "inputs",
              "languages", "deviation", "regimes", "backends", "emulator", "run", "workers", "tuning", "extensions",
              "profilers", "analysis", "studies", "api", "report", "pytest_plugin"],
    "scipy": [],
    "cupy": ["backends/cuda", "compilation/bindings", "extensions/memory", "studies/crosscheck"],
    "cupyx": ["backends/cuda"], "torch": ["backends/cuda"],
    "cuda": ["compilation/bindings", "studies/crosscheck"],
    "pynvml": ["backends/cuda", "monitor"], "elftools": ["compilation"],
    "cupti": ["profilers/cupti", "studies/crosscheck"], "ncu_report": ["profilers/ncu_report"],
    "pandas": ["store", "analysis", "exchange", "extensions"],
    "orjson": ["store", "report"],
    "msgspec": ["documents", "record_schema", "record_check", "workers", "emulator", "languages", "extensions",
                "report/comment"],
    "matplotlib": ["report", "extensions", "result_views"],
    "tree_sitter": ["sources/syntax"], "tree_sitter_cuda": ["sources/syntax"],
    "jinja2": ["scaffold", "report", "sources/skeleton"], "markupsafe": ["report"],
    "typer": ["cli", "options", "extensions"],
    "rich": ["cli", "options", "extensions", "report/terminal", "api/progress"],
    "pytest": ["pytest_plugin"],
    "rmm": ["extensions/memory/allocators"],
    "kernel_tuner": ["tuning/strategies"],
    "triton": ["languages/loaders/triton"],
    "asv": ["suites", "report/asv", "studies"],
    "otava": ["studies"], "git_bayesect": ["studies"],
    "distributed": ["fleet"], "prometheus_client": ["monitor"], "fsspec": ["studies/keeping"],
}  # fmt: skip

LONGEST_FUNCTION, LONGEST_FILE = 60, 900
_PACKAGES = {"tile": "cuda", "cute": "cutlass"}  # of languages that are not called as they are imported


def _place(path: Path) -> str:
    """`report/terminal` for prism_bench/report/terminal/record.py, `suites` for any of the suites."""
    relative = path.relative_to(HOUSE).with_suffix("")
    return relative.parts[0] if relative.parts[0] == "suites" else "/".join(relative.parts[1:])


def _imports(path: Path, relative_to: tuple[str, ...] = (), at_top: bool = False) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in the file, those inside functions too unless `at_top`.

    Relative imports are left out where they lead into one of `relative_to`; elsewhere they are refused.
    """
    tree = ast.parse(path.read_text())
    for node in tree.body if at_top else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level and _target(path, node).parts[:1] == relative_to:
                continue
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _target(path: Path, node: ast.ImportFrom) -> Path:
    """Return what a spec imports relatively, as a path below the catalogue."""
    package = path.relative_to(HOUSE / "kernels").parents[node.level - 1]
    return package / (node.module or "").replace(".", "/")


def _room_of(name: str) -> str | None:
    """The room of ours that an imported name lives in; None for anything else."""
    parts = name.split(".")
    if parts[0] == "suites":
        return "suites"
    if parts[0] != "prism_bench" or len(parts) == 1:
        return None
    return parts[1] if parts[1] in FLOOR else None


def _may_know(room: str, other: str) -> bool:
    one_room = room == other or {room, other} <= set(NOUNS) or {room, other} <= set(FLOORS[0])
    return one_room or FLOOR[other] < FLOOR[room] or (room, other) in STANDS_ON


def test_every_room_has_a_floor():
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert rooms - set(DOORS) <= set(FLOOR), "a new room needs a floor in architecture and here"


def test_no_room_looks_up():
    seen = 0
    for path in OURS:
        room = _place(path).split("/")[0]
        for line, name in _imports(path) if room not in DOORS else ():
            other = _room_of(name)
            seen += other is not None
            assert other is None or _may_know(room, other), f"{path}:{line}: {room} may not know {other}"
    assert seen > 100, "the imports were not read"


def test_extensions_do_not_need_each_other():
    """One may use another where that is installed, inside a function; and the core names none."""
    home, seen = PACKAGE / "extensions", 0
    for path in sorted(home.rglob("*.py")):
        own = path.relative_to(home).parts[0].removesuffix(".py")
        for line, name in _imports(path, at_top=True):
            parts = name.split(".")
            if parts[:2] == ["prism_bench", "extensions"] and len(parts) > 2:
                seen += 1
                assert own == parts[2], f"{path}:{line}: {own} may use {parts[2]} only inside a function"
    assert seen > 50, "the imports were not read"
    for path in OURS:
        if home not in path.parents:
            for line, name in _imports(path, at_top=_place(path) in DOORS):  # type checkers know public functions
                assert not name.startswith("prism_bench.extensions."), f"{path}:{line}: the core knows no extension"


def test_outside_packages_stay_in_their_places():
    for path in OURS:
        place = _place(path)
        for line, name in _imports(path):
            top = name.split(".")[0]
            if top in sys.stdlib_module_names or top in ("prism_bench", "suites"):
                continue
            homes = OUTSIDE.get(top, [])
            at_home = any(place == home or place.startswith(f"{home}/") for home in homes)
            assert at_home, f"{path}:{line}: {top} belongs in {homes or 'no place of ours'}"


def test_specs_are_written_in_the_public_words():
    """A peer may import its own library when it is called; reading the catalogue needs nothing but NumPy."""
    ours = {"prism_bench", "prism_bench_catalogue"}
    peers, light = {"cupy", "cupyx", "torch"}, {"numpy", "scipy", *ours, *sys.stdlib_module_names}
    for path in sorted((HOUSE / "kernels").rglob("*.py")):
        at_top = {node.lineno for node in ast.parse(path.read_text()).body}
        for line, name in _imports(path, relative_to=("include",)):
            own = {_PACKAGES.get(one, one) for one in re.split(r"[._]", path.name)}  # its language
            allowed = (light if line in at_top else light | peers) | own
            assert name.split(".")[0] in allowed, f"{path}:{line}: a spec may not import {name} here"


@pytest.mark.parametrize(
    "words",
    ["from prism_bench import In, KernelSpec, elementwise, uniform",
     "from prism_bench.catalogue import discover; discover()"],
    ids=["words", "catalogue"],
)  # fmt: skip
def test_import_is_light(words):
    script = f"import sys; {words}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=HOUSE)
    tops = {name.split(".")[0] for name in loaded.stdout.split()}
    assert "numpy" in tops and not tops & {"cupy", "pandas", "matplotlib", "scipy", "torch", "typer", "rich", "jinja2"}
    assert not tops & {"triton", "cutlass", "cuda", "numba", "llvmlite", "warp", "jax"}, "compilers of kernel languages"


def test_the_package_itself_loads_nothing():
    """A command guards itself against signals first: what is imported before that would end in a traceback."""
    script = "import sys; before = {*sys.modules}; import prism_bench.io.interrupts; print(*{*sys.modules} - before)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=HOUSE)
    tops = {name.split(".")[0] for name in loaded.stdout.split()}
    assert "prism_bench" in tops
    assert tops <= {"prism_bench", *sys.stdlib_module_names}


def test_modules_are_attributes_of_the_package():
    script = "import prism_bench; print(prism_bench.errors.UsageError.exit_code, hasattr(prism_bench, 'nothing'))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=HOUSE)
    assert "2 False" == told.stdout.strip()


def test_public_names_exist():
    modules = [path for path in OURS if "__all__" in path.read_text()]
    assert modules
    for path in modules:
        parts = path.relative_to(HOUSE).with_suffix("").parts
        module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
        missing = [name for name in module.__all__ if not hasattr(module, name)]
        assert not missing, f"{path}: __all__ names {missing}"


def _functions(paths: list[Path]) -> Iterator[tuple[Path, ast.FunctionDef]]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def test_functions_and_files_are_short():
    for path, node in _functions(SOURCES):
        lines = node.end_lineno - node.lineno + 1
        assert lines <= LONGEST_FUNCTION, f"{path}:{node.lineno}: {node.name} has {lines} lines"
    for path in SOURCES:
        lines = path.read_text().count("\n")
        assert lines <= LONGEST_FILE, f"{path} has {lines} lines"


def test_no_rooms_without_a_purpose():
    vague = {"utils", "util", "helpers", "common", "misc"}
    found = [path for path in SOURCES if vague & set(path.relative_to(HOUSE).with_suffix("").parts)]
    assert not found


def test_the_documentation_shows_every_command():
    from docs.generated.commands import page
    from prism_bench.cli import app

    shown = page()
    names = [command.name for command in app.registered_commands]
    assert names
    missing = [name for name in names if f"prism-bench {name}" not in shown]
    assert not missing, f"the page of commands does not show: {missing}"


def test_whatever_is_kept_of_reports_is_explained():
    told = re.findall(r"`([^`<]+)", (HOUSE / "reports" / "README.md").read_text())
    kept = {Path(name).parts[1] for name in kept_files() if Path(name).parts[0] == "reports"} - {"README.md"}
    assert kept
    unexplained = [name for name in kept if not any(words.startswith(name) for words in told)]
    assert not unexplained, f"reports/README.md does not say what writes: {unexplained}"


def kept_files():
    """What is under version control, by name."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=HOUSE, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return list(filter(None, listed.stdout.split("\0")))


def test_nothing_kept_tells_where_it_was_written():
    places = [str(HOUSE).encode(), *(f"{place}/".encode() for place in _telling_places())]
    for name in kept_files():
        path = HOUSE / name
        content = path.read_bytes() if path.is_file() else b""
        assert not any(place in content for place in places), f"{name} holds a path of the machine it was written on"


def _telling_places():
    """The folder above the checkout and the home folder, unless they are places that everybody has."""
    return {HOUSE.parent, Path.home()} - {Path(place) for place in ("/", "/tmp", "/home", "/opt", "/src", "/root")}


def test_consoles_print_text_as_it_is():
    """Names and errors come from specs and records: markup in a string would colour them, or end the command."""
    made = {str(path.relative_to(HOUSE)) for path in OURS if re.search(r"\bConsole\(", path.read_text())}
    assert {"prism_bench/cli/options/__init__.py", "prism_bench/api/progress.py"} == made
    closing = re.compile(r"\[/\w*\]")
    texts = [path for path in OURS if {"cli", "options", "report", "extensions"} & set(path.relative_to(HOUSE).parts)]
    assert [] == [str(path) for path in texts if closing.search(path.read_text())]
