"""What holds for every command: help, mistakes, pipes, colours."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench import __version__
from prism_bench.cli.commands import REPLACED_OPTIONS
from prism_bench.io.installation import why_no_gpu

TOYS = Path(__file__).parent.parent / "toys"
COMMANDS = ("list", "verify", "run", "show", "report")


def python(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "prism_bench", *words], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_help_lists_every_command(shell):
    found = shell("--help")
    assert 0 == found.code
    for name in COMMANDS:
        assert f"\n  {name} " in found.out


def test_it_says_its_version(shell):
    found = shell("--version")
    assert (0, f"prism-bench {__version__}\n") == (found.code, found.out)


def test_what_a_command_does_is_a_whole_sentence_in_the_list(shell):
    assert [] == [line for line in shell("--help").out.splitlines() if line.startswith("  ") and line.endswith("...")]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_it_does_and_offers_json(shell, name):
    found = shell(name, "--help")
    assert 0 == found.code
    assert "--json" in found.out


def test_without_a_command_there_is_help(shell):
    found = shell()
    assert "Everyday" in found.out + found.err


@pytest.mark.parametrize(
    "words", [["nonsense"], ["list", "--nonsense"], ["run", "--processes", "0"], ["run", "--timeout", "x"]]
)
def test_a_mistyped_command_line_ends_with_2_and_no_traceback(shell, words):
    found = shell(*words)
    assert (2, "") == (found.code, found.out)
    assert "Traceback" not in found.err


def test_an_option_that_is_gone_names_what_replaces_it(shell, monkeypatch):
    monkeypatch.setitem(REPLACED_OPTIONS, "list", {"--old": "use --all"})
    for words in (["--old"], ["--old=3"], ["softmax", "--json", "--old", "--all"]):
        answer = shell("list", *words)
        assert (2, "prism-bench: list has no option --old any more; use --all\n") == (answer.code, answer.err)
    assert 2 == shell("verify", "--old").code
    assert "--old" not in shell("list", "--help").out


@pytest.mark.parametrize("command", ["list", "verify", "run"])
def test_an_unknown_kernel_ends_with_2_and_the_nearest_names(shell, toys, command):
    backend = [] if command == "list" else ["--backend", "null"]
    found = shell(command, *toys, *backend, "--filter", "tripel")
    assert 2 == found.code
    assert "prism-bench: unknown kernel, family or case 'tripel'; did you mean triple, twice?\n" == found.err


@pytest.mark.parametrize("command", ["list", "verify", "run"])
def test_an_unknown_label_ends_with_2_and_the_nearest_names(shell, toys, command):
    backend = [] if command == "list" else ["--backend", "null"]
    found = shell(command, *toys, *backend, "--label", "S3")
    assert 2 == found.code
    assert found.err.startswith("prism-bench: unknown label 'S3'; did you mean S")


@pytest.mark.parametrize("command", ["verify", "run"])
def test_an_unknown_backend_ends_with_2_and_the_nearest_names(shell, toys, command):
    found = shell(command, *toys, "--backend", "nul")
    assert 2 == found.code
    assert "prism-bench: unknown backend 'nul'; did you mean null" in found.err


@pytest.mark.parametrize("command", ["verify", "run"])
def test_a_backend_that_is_not_there_ends_with_2_and_one_sentence(shell, toys, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    found = shell(command, *toys, "--backend", "cuda")
    assert 2 == found.code
    assert f"prism-bench: {why_no_gpu('CuPy', 'cuda13')}\n" == found.err


@pytest.mark.parametrize("command", ["list", "verify", "run"])
def test_a_missing_catalogue_says_what_a_catalogue_is(shell, command):
    found = shell(command, "--catalogue", "nowhere", *([] if command == "list" else ["--backend", "null"]))
    assert 2 == found.code
    assert "prism-bench: no catalogue at nowhere: a catalogue is a folder of" in found.err


@pytest.mark.parametrize("command", ["verify", "run"])
def test_a_choice_that_leaves_nothing_ends_with_2(shell, toys, command):
    found = shell(command, *toys, "--backend", "null", "--filter", "triple", "--label", "S2")
    assert 2 == found.code
    assert "no case is left to run" in found.err


@pytest.mark.parametrize("command", ["verify", "run"])
def test_a_catalogue_without_kernels_names_what_it_lacks(shell, toys, command, tmp_path):
    for folder, cure in ((tmp_path, "write <family>/<name>.cu and .py"), (toys[1] / "arith", "name the folder above")):
        found = shell(command, "--catalogue", folder, "--backend", "null")
        assert 2 == found.code
        assert f"the catalogue {folder} has no family; {cure}" in found.err


def test_a_pipe_gets_plain_text():
    found = python("list", "--catalogue", str(TOYS), FORCE_COLOR="", TERM="xterm-256color")
    assert 0 == found.returncode
    assert "\x1b" not in found.stdout
    assert "nothing" in found.stdout


def test_no_color_is_kept_even_where_colour_is_forced():
    found = python("list", "--catalogue", str(TOYS), FORCE_COLOR="1", NO_COLOR="1")
    assert "nothing" in found.stdout
    assert [] == re.findall(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])[0-9;]*m", found.stdout)


def test_a_reader_that_goes_away_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "prism_bench", "list", "--json", "--catalogue", str(TOYS)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdout.close()
    words = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert "" == words


def asking(**environment):
    """What `prism-bench` answers a shell, and the modules that it loaded."""
    script = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    script += "sys.argv = ['prism-bench']; from prism_bench.cli import main; main()"
    asked = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=asked)
    assert 0 == done.returncode, done.stderr
    return done.stdout, set(done.stderr.split())


def completed(words, place):
    """What bash offers for the word at the place, and the modules that were loaded."""
    offered, loaded = asking(_PRISM_BENCH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(place))
    return set(offered.split()), loaded


def test_a_shell_completes_commands_and_options():
    assert {"compare", "compile", "comment"} == completed("prism-bench com", 1)[0]
    assert {"--itself"} == completed("prism-bench compare main --it", 3)[0]
    assert {"--pull-request"} == completed("prism-bench comment --pu", 2)[0]
    assert set() == completed("prism-bench noise --pu", 2)[0]


def test_a_shell_loads_its_completion():
    assert "COMP_WORDS" in asking(_PRISM_BENCH_COMPLETE="source_bash")[0]


def test_a_completion_loads_no_command_that_is_only_named():
    loaded = completed("prism-bench com", 1)[1]
    assert "prism_bench.cli.commands" in loaded
    assert not loaded & {"numpy", "rich", "prism_bench.cli.run", "prism_bench.catalogue"}
    assert not completed("prism-bench run --la", 2)[1] & {"numpy", "prism_bench.cli.compare"}
