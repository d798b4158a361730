"""The pages "Ten minutes", "Pull requests" and "Bisect" with the wheel, in an empty git repository."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.backends.null import SCRIPT
from tests.docs.blocks import PAGES, blocks, flattened, pattern

PAGE, BISECT = PAGES / "guides" / "ten_minutes.md", PAGES / "guides" / "bisect.md"
REQUESTS = PAGES / "guides" / "pull_requests.md"
MOST_COMMANDS = 6  # from nothing to the verdict on a changed kernel
SLOWER = r"^1 slower +working tree against"
# No GPU is needed: times are scripted, twice as long with the small blocks of the page.
TIMES = {"saxpy*": {"seconds": 1e-6, "sass": "one", "with_source": {"block=32)": {"seconds": 2e-6, "sass": "two"}}}}
WHO = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def commands():
    """The commands of the page up to continuous integration, with the code that each ends with."""
    text = PAGE.read_text().partition("### 5.")[0]
    found = [
        line for block in blocks(PAGE) if block.language == "bash" and block.text in text for line in block.commands
    ]
    codes = [int((re.findall(r"# ends with (\d)", line) or ["0"])[0]) for line in found]
    return [(line, code) for line, code in zip(found, codes, strict=True) if line.strip() != "prism-bench init . src"]


def to_the_verdict():
    """The commands of the page up to the first verdict."""
    found = commands()
    return found[: 1 + next(at for at, (line, _) in enumerate(found) if line.startswith("prism-bench compare"))]


@pytest.fixture
def user(installed, tmp_path):
    """A function that runs a line of the shell in an empty repository, where `prism-bench` is the wheel's."""
    root, bin = tmp_path / "repository", tmp_path / "bin"
    bin.mkdir()
    (bin / "prism-bench").write_text(f'#!/bin/sh\nexec {sys.executable} -m prism_bench "$@"\n')
    (bin / "prism-bench").chmod(0o755)
    script = tmp_path / "script.json"
    script.write_text(json.dumps(TIMES))
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    more = {SCRIPT: str(script), "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "PRISM_BENCH_MACHINE": "box", **WHO}

    def run(line):
        return subprocess.run(["bash", "-c", line], cwd=root, env=installed.environment(**more), capture_output=True,
                              text=True, timeout=240)  # fmt: skip

    run.root = root
    return run


def test_a_slower_kernel_is_found_and_checked_without_a_file_by_hand(user):
    install, *rest = commands()
    assert install[0].startswith("pip install")
    printed = {}
    for line, code in rest:
        printed[line.split()[1]] = run_line(user, line, code)
    assert re.search(SLOWER, printed["compare"].stdout, re.MULTILINE)
    assert "Worse: 1 case slower than when last measured" in printed["check"].stdout
    assert "catalogue: kernels (prism-bench.toml)" in printed["check"].stderr


def test_the_verdict_takes_six_commands_the_change_included(user):
    (install, _), *rest = to_the_verdict()
    assert MOST_COMMANDS >= 1 + len(rest)
    words = [line.split()[:2] for line, _ in rest]
    assert [
        ["prism-bench", "init"],
        ["git", "add"],
        ["git", "commit"],
        ["sed", "-i"],
        ["prism-bench", "compare"],
    ] == words
    assert re.match(r"pip install 'prism-gpu-bench\[\w+\]'", install)
    done = [run_line(user, line, code) for line, code in rest][-1]
    assert 1 == done.returncode
    assert re.search(SLOWER, done.stdout, re.MULTILINE), done.stdout


def section(page, begin, end):
    """The blocks of a page from one heading to another one."""
    text = page.read_text()
    assert begin in text and end in text
    chosen = text.partition(begin)[2].partition(end)[0]
    return [block for block in blocks(page) if block.text in chosen]


def follow(user, found):
    """Write the files and run the commands of the blocks; what the last command ended with."""
    done = None
    for block in found:
        if block.is_file:
            (user.root / block.title).write_text(block.text)
        elif block.is_output:
            assert pattern(block.text).search(flattened(done.stdout)), f"{block.place}: printed {done.stdout}"
        elif block.language == "bash":
            for line in block.commands:
                done = run_line(user, line, int((re.findall(r"# ends with (\d)", line) or ["0"])[0]))
    return done


def run_line(user, line, code=0):
    """Run one command of a page, which ends with that code."""
    done = user(line)
    assert code == done.returncode, f"{line}: {done.stdout}{done.stderr}"
    if line.startswith("prism-bench init"):  # the times are scripted: no other backend has them here
        path = user.root / "prism-bench.toml"
        path.write_text(f'backend = "null"\n{path.read_text()}')
    return done


def test_a_triton_kernel_and_an_operator_take_one_file_each(user):
    run_line(user, "prism-bench init")
    found = [block for block in section(PAGE, "## Triton", "## Configuration") if not block.is_only_read]
    files = [Path(block.title).name for block in found if block.is_file]
    assert ["saxpy.triton.py", "squared_relu.py"] == files
    follow(user, found)
    cases = [case for path in (user.root / "reports" / "runs" / "box").glob("*.json.gz")
             for case in json.loads(gzip.decompress(path.read_bytes()))["cases"]]  # fmt: skip
    assert {"saxpy:triton[n=100000]", "squared_relu[n=100000]"} <= {case["name"] for case in cases}
    assert {"ok"} == {case["status"] for case in cases}


def test_the_planted_commit_of_the_page_is_found(user):
    found = section(BISECT, "## Try it", "The case is one of those")
    done = follow(user, found)
    assert "4 commits, 3 of different code" in done.stderr
    assert pattern(found[-1].text).search(flattened(done.stdout)), done.stdout
    culprit = user("git rev-parse --short=10 HEAD~1").stdout.strip()
    assert f"changed by {culprit} Take blocks of 32 threads" in done.stdout
    assert (user.root / "search.json").is_file()


def test_a_pull_request_is_compared_and_commented(user):
    for line in ("prism-bench init", "git add --all", "git commit --quiet --message 'Measure kernels'",
                 "git checkout --quiet -b feature", "sed -i 's/256/32/g' kernels/example/saxpy.py",
                 "git commit --quiet --all --message 'Take blocks of 32 threads'"):  # fmt: skip
        run_line(user, line)
    own, *stored = section(REQUESTS, "## The comment", "`--post` writes the comment")
    comment = follow(user, [own]).stdout
    measured = json.loads((user.root / "comparison.json").read_text())
    assert ("main", 1) == (measured["a"], measured["counts"]["slower"])
    assert comment.startswith("<!-- prism-bench comment -->\n\n### Prism Bench: this change is ")
    assert re.search(r"^\| \*\*slower\*\* \| saxpy\\\[n=100000\\\] \| .* \| \+(99|100)\.\d % \|", comment, re.MULTILINE)
    assert "prism-bench compare --filter 'saxpy[n=100000]' -- main" in comment
    assert "https://example.org/site/compare.html" in comment
    assert ["json", "bash", "markdown"] == [block.language for block in stored]
    assert stored[-1].is_output
    follow(user, stored)


def test_the_other_commands_of_pull_requests_run_from_the_wheel(user):
    found = section(REQUESTS, "`--post` writes the comment", "## In your tests")
    posted, *rest = [block for block in found if block.language == "bash"]
    follow(user, [block for block in section(REQUESTS, "## The comment", "`--post` writes") if block.is_file])
    for line in posted.commands:
        done = run_line(user, f"env -u GITHUB_TOKEN -u GITLAB_TOKEN -u GITLAB_CI -u CI_API_V4_URL {line}", 2)
        assert "GITHUB_TOKEN" in done.stderr and done.stdout.startswith("<!-- prism-bench comment -->")
    follow(user, rest)
    made = {path.relative_to(user.root).as_posix() for path in user.root.rglob("*.yml")}
    assert made == {".github/workflows/prism-bench.yml", ".github/workflows/prism-bench-gpu.yml",
                    "gitlab_project/.gitlab-ci.yml", "gitlab_project/.gitlab/prism-bench.yml"}  # fmt: skip
