"""Every command with its arguments and options, as the command line knows them."""

import inspect
from collections.abc import Iterator

import typer

from docs.generated.markdown import code, joined, plain, prose, table
from prism_bench.cli import app


def commands() -> dict:
    """The commands by name, in the order of `prism-bench --help`."""
    return typer.main.get_command(app).commands


def page() -> str:
    """The whole page."""
    lead = (
        f"{len(commands())} commands. What each ends with is the same everywhere: see "
        "[troubleshooting](troubleshooting.md#what-a-command-ends-with)."
    )
    return joined(["# Commands", lead, *(_section(name, command) for name, command in commands().items())])


def _section(name, command):
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join([f"prism-bench {name}", *map(_place, arguments), *(["[OPTIONS]"] if options else [])])
    return joined(
        [
            f"## prism-bench {name} {{ #{name} }}",
            prose(inspect.cleandoc(command.help or "")),
            f"```text\n{usage}\n```",
            table(("argument", "meaning"), [(code(one.name.upper()), plain(one.help or "")) for one in arguments]),
            table(("option", "meaning", "default"), [_option(one) for one in options]),
        ]
    )


def _place(argument):
    word = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _option(option):
    return ", ".join(map(code, _spellings(option))), plain(option.help or ""), _default(option)


def _spellings(option) -> Iterator[str]:
    yield from option.opts
    yield from option.secondary_opts


def _default(option):
    """What stands without the option; nothing where that is off, none, or not told."""
    value = option.default
    if option.is_flag:
        return code((option.opts if value else option.secondary_opts)[0]) if option.secondary_opts else ""
    return "" if value is None or callable(value) else code(value)
