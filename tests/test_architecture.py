"""Who may import whom, what stays light, how large things may grow. Read from the sources."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import house_numbers, imports

HOUSE = Path(__file__).resolve().parent.parent
PACKAGE = HOUSE / "prism_bench"
SOURCES = sorted(path for top in ("prism_bench", "suites", "tests") for path in (HOUSE / top).rglob("*.py"))
OURS = [path for path in SOURCES if "tests" not in path.relative_to(HOUSE).parts]

# What spec files import of ours; a peer may build code, which names its compiler and is kept.
DOORS_OF_SPECS = (
    "prism_bench", "prism_bench.spec", "prism_bench.errors", "prism_bench.backends", "prism_bench.compilation"
)  # fmt: skip

# Outside packages and the only places that may name them.
OUTSIDE = {
    "numpy": ["spec", "record", "io/channels", "catalogue/edge_inputs", "catalogue/project_reference",
              "compilation/languages", "backends", "emulator",
              "run", "workflows", "extensions", "profilers", "analysis", "api", "report", "pytest_plugin"],
    "scipy": [],
    "cupy": ["backends/cuda", "compilation/compilers", "extensions/memory"],
    "cupyx": ["backends/cuda"], "torch": ["backends/cuda"],
    "cuda": ["compilation/compilers"],
    "pynvml": ["backends/cuda", "monitor"], "elftools": ["compilation", "extensions/judge"],
    "cupti": ["profilers/cupti"], "ncu_report": ["profilers/ncu"],
    "pandas": ["record/store", "record/formats", "analysis", "extensions"],
    "orjson": ["record/store", "report"],
    "msgspec": ["io", "catalogue", "record", "emulator", "compilation/languages", "extensions",
                "workflows/toolchains"],
    "matplotlib": ["report", "extensions", "record/run_record"],
    "PIL": ["report"],
    "tree_sitter": ["compilation/host_source"], "tree_sitter_cuda": ["compilation/host_source"],
    "jinja2": ["report", "extensions"], "markupsafe": ["report"],
    "typer": ["cli", "extensions"],
    "rich": ["cli", "extensions", "report/terminal", "api/callables"],
    "pytest": ["pytest_plugin"],
    "rmm": ["extensions/memory"],
    "kernel_tuner": ["workflows/tuning/search"],
    "triton": ["compilation/languages/loaders/triton"],
    "asv": ["suites", "report/asv", "extensions/ci/asv_runs"],
    "distributed": ["extensions/fleet"], "prometheus_client": ["monitor"], "fsspec": ["extensions/ci/keeping"],
}  # fmt: skip

LONGEST_FUNCTION, LONGEST_FILE = 60, 900
MOST_VAGUE_NAMES = 90  # this number only falls
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
            if node.level and _target(path, node).parts[0] in relative_to:
                continue
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _target(path: Path, node: ast.ImportFrom) -> Path:
    """Return what a spec imports relatively, as a path below the catalogue."""
    package = path.relative_to(HOUSE / "kernels").parents[node.level - 1]
    return package / (node.module or "").replace(".", "/")


def test_every_package_has_a_layer():
    packages = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    layered = {package for packages in imports.LAYERS for package in packages}
    assert layered == packages - {"__init__", "__main__"}, "a new package needs a layer, on the page and in the lab"


def test_no_file_imports_from_a_higher_layer_or_in_a_circle():
    edges = imports.edges(imports.modules(PACKAGE))
    assert sum(map(len, edges.values())) > 1000, "the imports were not read"
    assert [] == imports.upward(edges)
    assert [] == imports.circles(edges)


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
            is_door = _place(path) in ("__init__", "__main__")  # type checkers know public functions
            for line, name in _imports(path, at_top=is_door):
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
        for line, name in _imports(path, relative_to=("include", "peers")):
            own = {_PACKAGES.get(one, one) for one in re.split(r"[._]", path.name)}  # its language
            allowed = (light if line in at_top else light | peers) | own
            assert name.split(".")[0] in allowed, f"{path}:{line}: a spec may not import {name} here"


def test_specs_name_no_inner_module():
    """Modules may move: a spec that an old claim carries must still load."""
    folders = ("kernels", "tests/toys", "tests/tunable", "tests/zoo", "tests/extensions/judge/tasks")
    names = [
        (path, line, *name.rpartition(".")[::2])
        for folder in folders
        for path in sorted((HOUSE / folder).rglob("*.py"))
        for line, name in _imports(path, relative_to=("include", "peers"))
        if name.split(".")[0] == "prism_bench"
    ]
    assert len(names) > 1000, "the imports were not read"
    extensions = {f"prism_bench.extensions.{path.name}" for path in (PACKAGE / "extensions").iterdir()}
    for path, line, module, name in names:
        is_door = module in {*DOORS_OF_SPECS, *extensions}
        assert is_door, f"{path}:{line}: a spec imports {name} from a door, not from {module}"
        offered = getattr(importlib.import_module(module), "__all__", None)
        assert offered is None or name in offered, f"{path}:{line}: {module} does not offer {name}"


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


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        ("from prism_bench.cli import app", {"numpy", "pandas", "cupy", "torch", "matplotlib", "jinja2"}),
        ("sys.argv[1:] = ['--version']; from prism_bench.cli import main; main()", {"numpy", "typer", "rich"}),
        ("sys.argv[1:] = ['show', '--help']; from prism_bench.cli import main; main()", {"numpy", "pandas"}),
    ],
    ids=["commands", "version", "help"],
)
def test_the_command_line_starts_without(words, heavy):
    script = f"import sys, atexit; atexit.register(lambda: print(*sys.modules)); {words}"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=HOUSE)
    tops = {name.split(".")[0] for name in loaded.stdout.split()}
    assert "prism_bench" in tops and not tops & heavy


@pytest.mark.parametrize("module", ["prism_bench.io.files", "prism_bench.spec"])
def test_the_package_itself_loads_nothing(module):
    """A command guards itself against signals first: what is imported before that would end in a traceback."""
    script = f"import sys; before = {{*sys.modules}}; import {module}; print(*{{*sys.modules}} - before)"
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


def test_values_are_named_after_what_they_hold():
    vague = sum(house_numbers.vague_names(ast.parse(path.read_text())) for path in PACKAGE.rglob("*.py"))
    words = ", ".join(sorted(house_numbers.VAGUE))
    assert vague <= MOST_VAGUE_NAMES, f"{vague} values and parameters are named {words}; name what they hold"


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
    assert not [path for path in found if "strangers" not in path.parts]  # which are named as strangers name them


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
    assert {"prism_bench/cli/options.py", "prism_bench/api/callables.py"} == made
    closing = re.compile(r"\[/\w*\]")
    texts = [path for path in OURS if {"cli", "options", "report", "extensions"} & set(path.relative_to(HOUSE).parts)]
    assert [] == [str(path) for path in texts if closing.search(path.read_text())]
