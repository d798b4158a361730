"""What a spec says of the form that fuses nothing: its arguments, a launch for each step, the variant and the chain."""

from prism_bench.extensions.fusion.literals import literal
from prism_bench.extensions.fusion.separate import Separate, size_name

VARIANT = "separate"


def functions(separate: Separate, given: tuple[list[str], list[str]], scalars: tuple[str, ...]) -> list[str]:
    """The functions of the form; `given` are the texts of the program's inputs and outputs."""
    inputs, outputs = given
    between = [f'Scratch("{name}", "{" ".join(axes) or 1}", dtype)' for name, axes in separate.between.items()]
    numbers = [f'Scalar("{name}", dtype)' for name in scalars]
    rest = ", ".join([*separate.texts("scratch"), *numbers, *map(_size, separate.texts("sizes"))])
    arguments = "\n".join([
        f"def arguments_{VARIANT}(dtype):",
        f"    given = {_tuple([*inputs, *outputs])}",
        f"    between = {_tuple(between)}",
        f"    return (*given, *between, {rest})",
    ])  # fmt: skip
    steps = [
        f'def launch_{one.stage}(dtype, entry="{one.written.entry}", passed={literal(one.passed)}):\n'
        f"    {one.written.launch}"
        for one in separate.steps
    ]
    calls = ", ".join(f"launch_{one.stage}(dtype)" for one in separate.steps)
    return [arguments, *steps, f"def launch_{VARIANT}(dtype):\n    return together({calls})"]


def _tuple(parts):
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _size(text):
    """Sizes of 32 bits keep the axes' names; those of 64 bits follow from them."""
    name = size_name(text)
    return f'Scalar("{name}", "int64")' if name.startswith("wide_") else text


def changes(separate: Separate, dtype: str) -> dict[str, str]:
    """The fields of the variant."""
    wide = [name for text in separate.texts("sizes") if (name := size_name(text)).startswith("wide_")]
    derived = [f'"{name}": lambda {name[5:]}: {name[5:]}' for name in wide]
    derived += dict.fromkeys(one.written.derived[1:-1] for one in separate.steps if one.written.derived)
    return {
        "arguments": f"arguments_{VARIANT}({dtype})", "launch": f"launch_{VARIANT}({dtype})",
        "derived": f"{{{', '.join(derived)}}}".replace("dtype", dtype), "golden": "()", "budgets": "()",
    }  # fmt: skip


def chain(name: str, separate: Separate) -> str:
    """The chain from separate launches to one."""
    return f'(Chain("{name}", {{"baseline": "{VARIANT}", "full": None}}, {literal(tuple(separate.between))}),)'
