"""The pages "Ten minutes in your repository" and "Bisect" with the wheel, in an empty git repository."""

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
# No GPU is needed: times are scripted, twice as long with the small blocks of the page.
TIMES = {"saxpy*": {"seconds": 1e-6, "sass": "one", "with_source": {"block=32)": {"seconds": 2e-6, "sass": "two"}}}}
WHO = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def commands():
    """The commands of the page up to the verdicts, with the code that each ends with; what pip does is done."""
    text = PAGE.read_text().partition("### 4.")[0]
    found = [
        line for block in blocks(PAGE) if block.language == "bash" and block.text in text for line in block.commands
    ]
    codes = [int((re.findall(r"# ends with (\d)", line) or ["0"])[0]) for line in found]
    return [(line, code) for line, code in zip(found, codes, strict=True) if "--from" not in line]


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


def test_a_slower_kernel_is_found_in_at_most_six_commands_and_without_a_file_by_hand(user):
    install, *rest = commands()
    assert install[0].startswith("pip install")
    verdict = next(number for number, (line, _) in enumerate(rest, 2) if line.startswith("prism-bench compare"))
    ours = [line for line, _ in rest[: verdict - 1] if line.startswith("prism-bench")]
    assert ["init", "verify", "run", "compare"] == [line.split()[1] for line in ours]
    printed = {}
    for line, code in rest:
        printed[line.split()[1]] = run_line(user, line, code)
    assert re.search(r"^1 slower +working tree against", printed["compare"].stdout, re.MULTILINE)
    assert "Worse: 1 case slower than when last measured" in printed["check"].stdout
    assert "catalogue: kernels (prism-bench.toml)" in printed["check"].stderr


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
