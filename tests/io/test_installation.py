"""Commands that install this package name where it came from, and never `prism-bench`, which is another project's."""

import json
import re
import shlex
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from prism_bench import __version__
from prism_bench.extensions.init.project import PARTS, ProjectFacts, part_files
from prism_bench.io import installation
from prism_bench.io.installation import DISTRIBUTION, InstallSource, pip_install, published_source, source, source_of

HOUSE = Path(__file__).resolve().parents[2]
GIT = {"url": "https://host/team/bench.git", "vcs_info": {"vcs": "git", "commit_id": "ab" * 20}}
# What installs or requires the distribution `prism-bench`; the command and files have that name, too.
OLD = re.compile(
    r"""prism-bench\[ | prism[-_]bench\s*(===?|[>~!<]=)\s*[\d$%{] | ^name\ =\ "prism-bench" | \buv\ add\ prism-bench\b
    | \b(pip|uv\ tool|pipx)\s+install\b[^\n;|&#)]*(?<![\w/.-])prism[-_]bench(?![\w./-])
    | (?<![\w./-])(install|require[sd]?)\ prism-bench(?![\w./-])""",
    re.VERBOSE | re.MULTILINE,
)


@pytest.fixture
def installed_from(monkeypatch):
    """A function that pretends that pip kept these facts of this installation."""

    def pretend(facts):
        found = SimpleNamespace(read_text=lambda name: json.dumps(facts) if facts else None)
        monkeypatch.setattr(installation.metadata, "distribution", lambda name: found)
        source.cache_clear()

    yield pretend
    source.cache_clear()


def test_the_project_has_the_free_name_and_its_extras_name_themselves():
    import tomllib

    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    assert DISTRIBUTION == project["name"]
    assert {"prism-bench"} == set(project["scripts"])
    wanted = [Requirement(one) for group in project["optional-dependencies"].values() for one in group]
    assert {DISTRIBUTION} == {one.name for one in wanted if "prism" in one.name}


def test_a_cure_names_the_source_that_the_installation_came_from(installed_from, tmp_path):
    wheel = tmp_path / "prism_gpu_bench-0.2.0-py3-none-any.whl"
    wheel.touch()
    folder = tmp_path / "a b"
    folder.mkdir()
    below = {**GIT, "subdirectory": "tools/bench"}
    digest = {"url": "https://host/x.whl", "archive_info": {"hashes": {"sha256": "12ab"}}}
    exact = f"prism-gpu-bench[asv]=={__version__}"
    for facts, words, elsewhere in (
        (None, [exact], exact),
        (GIT, one := [f"prism-gpu-bench[asv] @ git+https://host/team/bench.git@{'ab' * 20}"], one[0]),
        (below, one := [f"{one[0]}#subdirectory=tools/bench"], one[0]),
        (digest, one := ["prism-gpu-bench[asv] @ https://host/x.whl#sha256=12ab"], one[0]),
        ({"url": wheel.as_uri(), "archive_info": {}}, [f"prism-gpu-bench[asv] @ {wheel.as_uri()}"], exact),
        ({"url": folder.as_uri(), "dir_info": {}}, [f"prism-gpu-bench[asv] @ file://{tmp_path}/a%20b"], exact),
        ({"url": folder.as_uri(), "dir_info": {"editable": True}}, ["-e", f"{folder}[asv]"], exact),
        ({"url": (tmp_path / "gone").as_uri(), "dir_info": {}}, [exact], exact),
    ):
        installed_from(facts)
        assert ["pip", "install", *words] == shlex.split(pip_install("asv"))
        assert ["pip", "install", elsewhere] == shlex.split(pip_install("asv", anywhere=True))
        if words[0] != "-e":
            assert {"asv"} == Requirement(words[0]).extras
    assert source_of("0.2.0", {"url": 3, "archive_info": {}}).requirement() == "prism-gpu-bench @ 3"


def test_files_for_other_machines_name_the_commit_at_origin_or_the_exact_version(installed_from, tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()

    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(folder), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    installed_from({"url": folder.as_uri(), "dir_info": {"editable": True}})
    exact, commit = InstallSource(__version__), git("rev-parse", "HEAD")
    assert exact == published_source()[0]
    git("remote", "add", "origin", "https://me:secret@host/team/bench.git")
    assert exact == published_source()[0], "the commit was not pushed"
    git("update-ref", "refs/remotes/origin/main", commit)
    found, note = published_source()
    assert f"prism-gpu-bench @ git+https://host/team/bench.git@{commit}" == found.requirement()
    assert f"{folder} is on this machine only: what was written installs {found.requirement()}" == note
    git("remote", "set-url", "origin", "git@host:team/bench.git")
    assert f"git+ssh://git@host/team/bench.git@{commit}" == published_source()[0].url
    installed_from(GIT)
    assert (source(), None) == published_source()


@pytest.mark.parametrize("facts", [None, GIT])
def test_what_init_writes_installs_an_exact_source(installed_from, facts):
    installed_from(facts)
    files = [one for part in PARTS for one in part_files(part, ProjectFacts("project"))]
    lines = [line for one in files for line in one.text.splitlines() if re.search(r"pip\"? install", line)]
    assert 8 == len(lines)
    for line in lines:
        pinned = f"@ git+https://host/team/bench.git@{'ab' * 20}" if facts else f"=={__version__}"
        assert re.search(rf"prism-gpu-bench(\[\w+\])?\s?{re.escape(pinned)}", line), line
        assert not OLD.search(line)


def test_init_reports_what_workflows_install_where_the_installation_is_local(installed_from, tmp_path, monkeypatch):
    from prism_bench.extensions.init.project import new_project, new_project_json

    installed_from({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.chdir(tmp_path)
    note = f"{tmp_path} is on this machine only: what was written installs prism-gpu-bench=={__version__}"
    assert note == new_project_json(new_project(tmp_path / "new", ["github"]))["note"]
    assert new_project_json(new_project(tmp_path / "plain", ["asv"]))["note"] is None


def test_the_doctor_finds_another_project_in_our_place(tmp_path, monkeypatch):
    from prism_bench.doctor import checks

    def package():
        (found,) = [one for one in checks.host_checks() if one.name == "package"]
        return found

    assert "works" == package().state
    place = tmp_path / "first" / "prism_bench-0.3.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: prism-bench\nVersion: 0.3.0\n")
    (place / "RECORD").write_text("other/__init__.py,,\n")
    monkeypatch.syspath_prepend(place.parent)
    assert ("broken", "prism-bench 0.3.0") == (package().state, package().found)
    monkeypatch.undo()
    renamed = tmp_path / "another" / "renamed-1.dist-info"  # Python lists a folder anew only when its time has changed
    renamed.mkdir(parents=True)
    (renamed / "METADATA").write_text("Metadata-Version: 2.1\nName: renamed\nVersion: 1\n")
    (renamed / "RECORD").write_text("prism_bench/__init__.py,,\n")
    (renamed.parent / "prism_bench").mkdir()  # importlib_metadata, which asv imports, counts only files that exist
    (renamed.parent / "prism_bench" / "__init__.py").touch()
    monkeypatch.syspath_prepend(renamed.parent)
    assert ("broken", "renamed 1") == (package().state, package().found)
    assert package().cure.startswith("pip uninstall renamed, then pip install ")


def test_nothing_written_or_documented_installs_the_other_project():
    listed = subprocess.run(["git", "ls-files"], cwd=HOUSE, capture_output=True, text=True, check=True).stdout
    # What was released, decided and measured under the old name stays what it was.
    kept = ("CHANGELOG.md", "DECISIONS.md", "reports/", "tests/io/test_installation.py")
    found = []
    for name in listed.splitlines():
        path = HOUSE / name
        if name.startswith(kept) or not path.is_file() or path.suffix in {".gz", ".png"}:
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{name}: {match[0]}" for match in OLD.finditer(text)]
    assert not found


def test_the_search_finds_each_form_of_the_old_name():
    for text in (
        "pip install prism-bench", "pip install 'prism-bench[cuda13]'", "install prism-bench[tune]", "prism-bench==0.2",
        'name = "prism-bench"', '"$DIR/prism-bench/bin/pip" install -q "prism-bench[x]"', "uv tool install prism_bench",
        "python -m pip install -q prism-bench", 'pip install "prism-bench${EXTRAS:+[$EXTRAS]}"', "install prism-bench",
        "fsspec, which prism-bench[fleet] installs", "pipx install prism-bench",
    ):  # fmt: skip
        assert OLD.search(text), text
    for text in (
        "prism-bench run", "pip install prism-gpu-bench", "pip install x && prism-bench doctor", "prism-bench.toml",
        "scripts/setup installs .venv/bin/prism-bench", "uses: a/prism-bench/.github", "pip uninstall prism-bench",
    ):  # fmt: skip
        assert not OLD.search(text), text


def test_a_wheel_has_the_new_name(installed):
    (facts,) = [name for name in zipfile.ZipFile(installed.path).namelist() if name.endswith("/METADATA")]
    assert facts.startswith("prism_gpu_bench-")
