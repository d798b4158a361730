"""The source of a spec and its compiler options: paths relative to the spec, flags of its project's build."""

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from prism_bench.compilation.compilers import architecture_refusal
from prism_bench.compilation.program import compilers, is_prebuilt, marked, toolchain_of
from prism_bench.errors import SpecError
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import Variant

_FIELDS = ("source", "options", "compiler", "compile_commands")
_FOLDER_FLAGS = ("-I", "-isystem", "-iquote", "--include-path")
# Beginnings of the build's flags that decide a kernel's machine code; nvcc accepts all of them.
_DEVICE_FLAGS = (
    "-D", "-U", "-std", "--std", "--use_fast_math", "-use_fast_math", "--ftz", "-ftz", "--fmad", "-fmad", "--prec-",
    "-prec-", "--maxrregcount", "-maxrregcount", "--extra-device-vectorization", "-include", "--pre-include",
)  # fmt: skip
_NVCC_FLAGS = ("--expt-", "-expt-", "--extended-lambda", "-extended-lambda", "-Xptxas", "-Xcudafe", "--diag-", "-diag-")
_JOINED_BY_SIGN = ("-std", "--std", "-maxrregcount", "--maxrregcount")  # to a value in the next argument, by =
_WITH_VALUE = ("-D", "-U", *_JOINED_BY_SIGN, "-include", "--pre-include", "-Xptxas", "-Xcudafe")


def placed(spec: KernelSpec, path: Path) -> KernelSpec:
    """Return the spec at `path`, and its variants, with the path of its source and the options of its compiler.

    Raise SpecError if the source, or its entry in `compile_commands`, is missing.
    """
    has_only_callable = spec.callable is not None and not path.with_suffix(".cu").is_file()
    source = _source_of(spec.source or (path.name if has_only_callable else None), path)
    of_spec = {field: getattr(spec, field) for field in _FIELDS}
    options, variants = _options(of_spec, source, path), dict(spec.variants)
    of_spec["options"] = toolchain_of(spec.options).options  # a variant may choose another compiler
    for name, variant in spec.variants.items():
        changed = {field: variant.changes[field] for field in _FIELDS if field in variant.changes}
        is_placed = isinstance(changed.get("source"), Path) and len(changed) == 1 and not spec.compile_commands
        if changed and not is_placed:
            own_source = _source_of(changed["source"], path) if "source" in changed else source
            own_options = _options(of_spec | changed, own_source, path)
            changes = {**variant.changes, "source": own_source, "options": own_options}
            variants[name] = Variant(variant.meaning, **changes)
    return replace(spec, source=source, options=options, variants=variants)


def _source_of(name: Path | str | None, path: Path) -> Path:
    if name is None:
        source = path.with_suffix(".cu")
        if not source.is_file():
            raise SpecError(f"has no source {source.name} next to it")
        return source
    source = name if isinstance(name, Path) and name.is_absolute() else _from(path.parent, name)
    if not source.is_file():
        raise SpecError(f"source '{name}' is no file; it is looked for at {source}, relative to the spec")
    return source


def _from(folder: Path, name: Path | str) -> Path:
    return Path(os.path.normpath(folder / name))


def _options(fields: Mapping[str, Any], source: Path, path: Path) -> tuple[str, ...]:
    """Return the options of the build's entry, then the spec's, whose folders are relative to the spec."""
    compiler, commands = fields["compiler"], fields["compile_commands"]
    if compiler not in compilers():
        raise SpecError(f"compiler '{compiler}' is none of {', '.join(compilers())}")
    if is_prebuilt(source) and (commands or compiler != "nvrtc"):
        raise SpecError(f"source {source.name} is compiled already: it takes neither compiler nor compile_commands")
    of_build: list[str] = []
    if commands:
        file = _from(path.parent, commands)
        entry = _entry_of(file, source)
        arguments = entry.get("arguments") or shlex.split(str(entry.get("command", "")))
        flags = _device_flags([str(argument) for argument in cast("Sequence[object]", arguments)][1:], compiler)
        of_build = _with_folders(flags, _from(file.parent, str(entry.get("directory", "."))))
    of_spec = toolchain_of(fields["options"])
    if tuple(fields["options"]) not in (of_spec.options, marked(compiler, of_spec.options)):
        raise SpecError(f'options: --compiler= is not one of them; write compiler="{of_spec.compiler}" in the spec')
    if refusal := architecture_refusal(of_spec.options):
        raise SpecError(f"options: {refusal}")
    return marked(compiler, (*of_build, *_with_folders(of_spec.options, path.parent)))


def _with_folders(options: Iterable[str], folder: Path) -> list[str]:
    """Return options in which folders of headers are absolute, each in one argument with -I."""
    placed: list[str] = []
    arguments = iter(options)
    for argument in arguments:
        flag = next((flag for flag in _FOLDER_FLAGS if argument.startswith(flag)), None)
        if flag is None:
            placed.append(argument)
        else:
            name = argument[len(flag) :].lstrip("=") or next(arguments, "")
            placed.append(f"-I{_from(folder, name)}")
    return placed


def _entry_of(commands: Path, source: Path) -> Mapping[str, object]:
    """Return the entry of the source in a `compile_commands.json`."""
    try:
        entries: Any = json.loads(commands.read_text())
    except OSError as error:
        raise SpecError(f"compile_commands: {commands} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise SpecError(f"compile_commands: {commands} is no JSON ({error})") from error
    entries = entries if isinstance(entries, list) else []
    known = [entry for entry in entries if isinstance(entry, dict) and "file" in entry]
    for entry in cast("list[dict[str, object]]", known):
        folder = _from(commands.parent, str(entry.get("directory", ".")))
        if _from(folder, str(entry["file"])).resolve() == source.resolve():
            return entry
    raise SpecError(
        f"compile_commands: {commands} has no entry for {source}; it has {len(known)} other files: build "
        "the target that holds it, or write options= in the spec"
    )


def _device_flags(arguments: Sequence[str], compiler: str) -> list[str]:
    """Return the arguments that matter to a device's compiler; a flag is joined to a value in the next argument."""
    wanted = _DEVICE_FLAGS + (_NVCC_FLAGS if compiler == "nvcc" else ())
    flags: list[str] = []
    position = 0
    while position < len(arguments):
        flag = arguments[position]
        position += 1
        if flag in (*_FOLDER_FLAGS, *_WITH_VALUE) and position < len(arguments):
            value = arguments[position]
            if flag in (*_FOLDER_FLAGS, "-D", "-U"):
                flags.append(f"{flag}{value}")
            elif flag in _JOINED_BY_SIGN:
                flags.append(f"{flag}={value}")
            elif flag.startswith(wanted):
                flags += [flag, value]
            position += 1
        elif flag.startswith((*_FOLDER_FLAGS, *wanted)):
            flags.append(flag)
    return flags
