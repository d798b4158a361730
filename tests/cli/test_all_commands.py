"""What holds for the help and the options of every command."""

import re
from types import NoneType
from typing import get_args, get_type_hints

import pytest
import typer.main

from prism_bench.cli import app
from prism_bench.cli.commands import EXTENSIONS, GROUPS, REPLACED_OPTIONS
from scripts.plain_words import private_words

COMMANDS = typer.main.get_command(app).commands
# Commands that choose cases, chains, programs, pipelines or policies: by position and by --filter alike.
CHOOSING = (
    "bisect", "claim", "verify", "run", "list", "tune", "compile", "traffic", "profile", "compare", "trend", "fuse",
    "pipeline",
)  # fmt: skip
MOST_COMMANDS, MOST_OPTIONS = 27, 70  # these numbers only fall
# How many texts an option has that means one thing and is put in other words by some commands.
SEVERAL_TEXTS = {
    "--against": 2,  # what a command compares with
    "--format": 2,  # of the files of others
    "--gpu": 2,  # to use the GPU, too
    "--label": 2,  # of pipelines, which have other ones
    "--least": 2,  # the least change that is reported, or what a choice makes least
    "--machine": 2,  # the machine by its name
    "--output": 6,  # where to write
}
# These show one record, which is their position; --filter chooses its cases.
FILTERING = ("show", "export")
VERBS = set(
    """
    Add Alert Allow Append Audit Begin Check Choose Compare Compile Copy Count Draw End Evaluate Export Find Give Import
    Judge Keep Launch Leave List Listen Make Measure Merge Multiply Name Pass Pick Print Profile Put Read Refuse Run
    Sample Search Serve Set Share Show Sort Store Summarise Time Trace Try Tune Use Verify Watch Write Report
    """.split()
)
PARAMETERS = [
    pytest.param(name, one, id=f"{name}-{one.name}")
    for name, command in COMMANDS.items()
    for one in command.params
    if one.name != "help"
]


def test_every_command_is_in_the_help_by_group(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = shell("--help").out
    sections = dict(re.findall(r"^(\w+):\n((?:  .*\n?)+)", text, re.MULTILINE))
    for title, names in GROUPS.items():
        assert list(names) == re.findall(r"^  (\w+) ", sections[title], re.MULTILINE)
    rest = set(COMMANDS) - {name for names in GROUPS.values() for name in names}
    assert rest == set(re.findall(r"^  (\w+) ", sections[EXTENSIONS], re.MULTILINE))
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_starts_with_a_verb_and_is_a_sentence(name):
    first, _, rest = COMMANDS[name].help.partition("\n\n")
    assert first.split()[0] in VERBS
    assert first.endswith(".")
    assert [] == list(private_words(COMMANDS[name].help))


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_an_option_starts_with_a_verb_and_is_a_sentence(name, parameter):
    words = parameter.help or ""
    assert words.split()[0] in VERBS, words
    assert words.endswith("."), words
    assert [] == list(private_words(words))
    assert "\n" not in words


def element(hint):
    """The type of one value: `str` of `list[str] | None`."""
    hints = [one for one in get_args(hint) if one is not NoneType] or [hint]
    return element(hints[0]) if get_args(hints[0]) else hints[0]


def test_an_option_has_one_type_everywhere():
    types = {}
    for registered in app.registered_commands:
        hints = get_type_hints(registered.callback)
        for one in COMMANDS[registered.name].params:
            for spelling in one.opts if one.param_type_name == "option" else ():
                types.setdefault(spelling, {}).setdefault(element(hints[one.name]), []).append(registered.name)
    assert len(types) > 50
    assert {"--least"} == {spelling for spelling, found in types.items() if len(found) > 1}  # a share, or a quantity


def texts_of_options():
    """The commands by option and by its text."""
    texts = {}
    for name, command in COMMANDS.items():
        for parameter in command.params:
            for spelling in parameter.opts if parameter.param_type_name == "option" else ():
                if spelling.startswith("--"):
                    texts.setdefault(spelling, {}).setdefault(parameter.help, []).append(name)
    return texts


def test_commands_and_options_become_no_more():
    """Numbers that only fall: a new option takes the place of another, or has the name and meaning of one."""
    assert len(COMMANDS) <= MOST_COMMANDS
    assert len(set(texts_of_options()) - {"--help"}) <= MOST_OPTIONS


def test_an_option_has_one_text():
    texts = texts_of_options()
    assert dict.fromkeys(set(texts) - set(SEVERAL_TEXTS), 1) == {
        spelling: len(found) for spelling, found in texts.items() if spelling not in SEVERAL_TEXTS
    }
    assert SEVERAL_TEXTS == {spelling: len(texts.get(spelling, ())) for spelling in SEVERAL_TEXTS}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_names_values_by_words(shell, name):
    text = shell(name, "--help").out
    assert [] == re.findall(
        r"list\[|(?:int|float) range|<\w+>| (?:TEXT|PATH|INTEGER|FLOAT)\b",
        re.sub(r"<(?:family|name|runs|machine|UTC|commit)>", "", text),
    )


@pytest.mark.parametrize("name", sorted(REPLACED_OPTIONS))
def test_an_option_that_is_gone_is_in_no_command(shell, name):
    known = {
        spelling for parameter in COMMANDS[name].params for spelling in (*parameter.opts, *parameter.secondary_opts)
    }
    for option, instead in REPLACED_OPTIONS[name].items():
        assert option not in known
        ended = shell(name, option)
        assert (2, f"prism-bench: {name} has no option {option} any more; {instead}\n") == (ended.code, ended.err)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_that_reports_has_json(name):
    assert any("--json" in one.opts for one in COMMANDS[name].params)


@pytest.mark.parametrize("name", CHOOSING)
def test_cases_are_chosen_by_position_and_by_filter(name):
    command = COMMANDS[name]
    positions = [one for one in command.params if one.param_type_name == "argument" and one.nargs == -1]
    assert ["[CASES]..."] == [one.metavar for one in positions]
    assert any({"--filter", "-f"} == set(one.opts) for one in command.params)


def test_no_other_command_takes_patterns():
    taking = {name for name, command in COMMANDS.items() if any("--filter" in one.opts for one in command.params)}
    assert {*CHOOSING, *FILTERING} == taking


@pytest.mark.parametrize("words", [("triple",), ("--filter", "triple"), ("triple", "-f", "triple")])
def test_both_ways_choose_the_same(shell, toys, words):
    found = shell("list", *toys, *words, "--json").json
    assert {"triple"} == {case["kernel"] for case in found}


def test_show_and_compare_choose_cases_of_records(shell, toys):
    for name in ("a.json.gz", "b.json.gz"):
        shell("run", *toys, "triple", "double", "--backend", "null", "--processes", "1", "--output", name)
    found = shell("show", "a.json.gz", "--filter", "triple", *toys, "--json").json
    assert {"triple"} == {case["kernel"] for case in found["cases"] if not case["ceiling"]}
    found = shell("compare", "a.json.gz", "b.json.gz", "triple", "--all").out
    assert "triple[" in found
    assert "double" not in found
    assert "did you mean triple" in shell("show", "a.json.gz", "--filter", "tripel", *toys).err
