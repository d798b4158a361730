"""The configuration of a project: where it is found, what it may hold, and how a mistake is named."""

import platform
from dataclasses import dataclass
from pathlib import Path

import pytest

from prism_bench.errors import UsageError
from prism_bench.io import project


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A repository with a catalogue, which is the current folder."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "gpu" / "kernels").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_both_files_say_the_same(place):
    keys = 'catalogue = "gpu/kernels"\nlabels = ["S0", "S1"]\nstorage = "measured"\nbudgets = "promises"\n'
    (place / "prism-bench.toml").write_text(f"{keys}[nightly]\n")
    own = project.current()
    (place / "prism-bench.toml").unlink()
    (place / "pyproject.toml").write_text(
        f'[project]\nname = "a"\n[tool.prism-bench]\n{keys}[tool.prism-bench.nightly]\n'
    )
    shared = project.current()
    assert own.keys == shared.keys
    assert own.tables == shared.tables
    assert ("prism-bench.toml", "pyproject.toml: [tool.prism-bench]") == (own.where, shared.where)
    folders = shared.catalogue, shared.storage, shared.budgets
    assert tuple(place / name for name in ("gpu/kernels", "measured", "promises")) == folders


def test_it_is_found_from_every_folder_below_up_to_the_repository(place, monkeypatch):
    (place / "prism-bench.toml").write_text('catalogue = "gpu/kernels"')
    monkeypatch.chdir("gpu/kernels")
    assert Path("../../reports/runs") == project.stored(Path("reports/runs"), project.current())
    assert Path("elsewhere/runs") == project.stored(Path("elsewhere/runs"), project.current())
    (place / "gpu" / ".git").touch()  # a submodule, or a worktree
    assert project.current() is None
    assert Path("reports/runs") == project.stored(Path("reports/runs"), None)


def test_a_file_without_our_table_is_passed_over(place, monkeypatch):
    (place / "prism-bench.toml").write_text("")
    (place / "gpu" / "pyproject.toml").write_text("[tool.ruff]\n")
    monkeypatch.chdir("gpu")
    assert place / "prism-bench.toml" == project.current().file
    Path("pyproject.toml").write_text("broken [")  # another tool's mistake
    assert place / "prism-bench.toml" == project.current().file


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('catalog = "kernels"', "prism-bench.toml: unknown key 'catalog'; did you mean catalogue?"),
        ("zebra = 1", "prism-bench.toml: unknown key 'zebra'; keys are catalogue, labels, backend, storage, budgets, "),
        ("[nightli]", "prism-bench.toml: unknown key 'nightli'; did you mean nightly?"),
        ("catalogue = 1", "prism-bench.toml: catalogue: expected `str | null`, got `int`"),
        ('labels = "S0"', "prism-bench.toml: labels: expected `array`, got `str`"),
        ('labels = ["S9"]', "prism-bench.toml: labels: 'S9' is no label; choose among S0, S1, S2"),
        ("storage = [", "prism-bench.toml: not readable TOML (Invalid value"),
    ],
)  # fmt: skip
def test_a_mistake_names_file_and_key(place, text, complaint):
    (place / "prism-bench.toml").write_text(text)
    with pytest.raises(UsageError) as raised:
        project.current()
    assert str(raised.value).startswith(complaint)


def test_two_configurations_of_a_folder_are_refused(place):
    (place / "prism-bench.toml").write_text("")
    (place / "pyproject.toml").write_text("[tool.prism-bench]")
    with pytest.raises(UsageError, match="both prism-bench.toml and .* configure it; keep one of them"):
        project.current()
    (place / "prism-bench.toml").unlink()
    (place / "pyproject.toml").write_text("tool.prism-bench = 3")
    with pytest.raises(UsageError, match="is no table"):
        project.current()


def test_folders_are_looked_at_when_they_are_needed(place):
    (place / "prism-bench.toml").write_text('catalogue = "gone"\nbudgets = "prism-bench.toml"')
    found = project.current()
    with pytest.raises(UsageError, match=r"^prism-bench.toml: catalogue: there is no folder .*gone; create it"):
        _ = found.catalogue
    with pytest.raises(UsageError, match=r"^prism-bench.toml: budgets: .* is a file; name the folder"):
        _ = found.budgets


@pytest.mark.parametrize(
    ("value", "name"),
    [('"box"', "box"), (f'{{ "{platform.node()}" = "mine", other = "box" }}', "mine"), ('{ "-" = "box" }', None)],
)
def test_machines_have_one_name_or_one_by_host(place, value, name):
    (place / "prism-bench.toml").write_text(f"machine = {value}")
    assert name == project.current().machine


@dataclass(frozen=True)
class _Nightly:
    keep_days: int = 30
    page: str | None = None


def test_a_command_reads_its_own_table(place):
    (place / "prism-bench.toml").write_text("[nightly]\nkeep-days = 7")
    assert _Nightly(7) == project.current().section("nightly", _Nightly)
    assert _Nightly() == project.current().section("history", _Nightly)
    (place / "prism-bench.toml").write_text("[nightly]\nkeep_days = 7")
    with pytest.raises(UsageError, match="prism-bench.toml: nightly: unknown key 'keep_days'; did you mean keep-days"):
        project.current().section("nightly", _Nightly)
    (place / "prism-bench.toml").write_text('[nightly]\nkeep-days = "7"')
    with pytest.raises(UsageError, match="prism-bench.toml: nightly: keep-days: expected `int`, got `str`"):
        project.current().section("nightly", _Nightly)
    (place / "prism-bench.toml").write_text("nightly = 7")
    with pytest.raises(UsageError, match="nightly: it is 7, and has to be a table"):
        project.current().section("nightly", _Nightly)
    with pytest.raises(ValueError, match=r"not in project\.SECTIONS"):
        project.current().section("unheard", _Nightly)
