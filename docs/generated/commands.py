"""Every command with its arguments and options, as the command line knows them."""

import inspect
from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from docs.generated.markdown import code, joined, plain, prose, table
from prism_bench.cli import app


def commands() -> dict[str, TyperCommand]:
    """Return the commands by name, in the order of `prism-bench --help`."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return {name: one for name, one in group.commands.items() if isinstance(one, TyperCommand)}


def page() -> str:
    """Return the whole page."""
    lead = (
        f"{len(commands())} commands. The exit codes are the same everywhere: see "
        "[troubleshooting](troubleshooting.md#exit-codes)."
    )
    return joined(["# Commands", lead, *(_section(name, command) for name, command in commands().items())])


def _section(name: str, command: TyperCommand) -> str:
    arguments = [one for one in command.params if isinstance(one, TyperArgument)]
    options = [one for one in command.params if isinstance(one, TyperOption)]
    usage = " ".join([f"prism-bench {name}", *map(_place, arguments), *(["[OPTIONS]"] if options else [])])
    return joined(
        [
            f"## prism-bench {name} {{ #{name} }}",
            prose(inspect.cleandoc(command.help or "")),
            f"```text\n{usage}\n```",
            table(("argument", "meaning"), [(code(_name(one)), plain(one.help or "")) for one in arguments]),
            table(("option", "meaning", "default"), [_option(one) for one in options]),
        ]
    )


def _name(argument: TyperArgument) -> str:
    return (argument.name or "").upper()


def _place(argument: TyperArgument) -> str:
    word = _name(argument) + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _option(option: TyperOption) -> tuple[str, str, str]:
    return ", ".join(map(code, _spellings(option))), plain(option.help or ""), _default(option)


def _spellings(option: TyperOption) -> Iterator[str]:
    yield from option.opts
    yield from option.secondary_opts


def _default(option: TyperOption) -> str:
    """Return the default as text; nothing where it is off, None or computed."""
    value = option.default
    if option.is_flag:
        return code((option.opts if value else option.secondary_opts)[0]) if option.secondary_opts else ""
    return "" if value is None or callable(value) else code(value)
