"""What a compiler is given of a source: its own text, or the device side of one that holds host code."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.compilation.toolchain import toolchain_of
from prism_bench.io.files import shared_with

if TYPE_CHECKING:
    from prism_bench.compilation.host_source.device_side import DeviceSide

_PLACE = re.compile(r'^#line (\d+) ".*?([^"/\\]+)"$', re.MULTILINE)


def cut_source(source: Path, entries: Sequence[str], options: Sequence[str] = ()) -> "DeviceSide | None":
    """Return the device side of a source; None where it holds no host code.

    SpecError, with the line in the way, where it cannot separate the two.
    """
    from prism_bench.compilation.host_source.device_side import (
        device_side,  # a parser that only a source to compile needs
    )

    return device_side(source, toolchain_of(options).folders, entries, shared_with(source))


def without_places(text: str) -> str:
    """Return the text of a device side without the folders of its files: where they are changes no machine code."""
    return _PLACE.sub(r'#line \1 "\2"', text)
