"""Mangled names of C++ functions, as people write them."""

import ctypes
import re
from functools import cache
from typing import Any

_SUFFIX = re.compile(r"(?<=\d)[uUlL]+\b")


@cache
def demangled(symbol: str) -> str:
    """Return a symbol as C++ writes it, `void softmax<float, 4>(float*, int)`; the symbol itself where it is none.

    The C++ runtime's own function does it; without one symbols stay as they are.
    """
    library = _runtime() if symbol.startswith("_Z") else None
    if library is None:
        return symbol
    status, length = ctypes.c_int(), ctypes.c_size_t()
    text = library.__cxa_demangle(symbol.encode(), None, ctypes.byref(length), ctypes.byref(status))
    return ctypes.cast(text, ctypes.c_char_p).value.decode() if status.value == 0 and text else symbol  # pyright: ignore[reportOptionalMemberAccess]


def function_of(entry: str) -> str:
    """Return the function that an entry names, without its return type and parameters: `softmax<float, 4>`.

    An entry is a name, a template instance or a mangled symbol.
    """
    return _without_signature(demangled(entry)) if entry.startswith("_Z") else entry


def same_function(entry: str, symbol: str) -> bool:
    """Return whether a symbol is the function that an entry names."""
    return entry == symbol or _plain(function_of(entry)) == _plain(function_of(symbol))


def without_template(function: str) -> str:
    """Return a function's name without template arguments."""
    return function.partition("<")[0].strip()


def _without_signature(text: str) -> str:
    """Cut the return type before the name and the parameters behind it, outside of template arguments."""
    text = text.replace("(anonymous namespace)::", "")
    depth, start = 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if not depth and letter == " ":
            start = place + 1
        if not depth and letter == "(":
            return text[start:place]
    return text[start:]


def _plain(function: str) -> str:
    return _SUFFIX.sub("", "".join(function.split()).removeprefix("::"))


@cache
def _runtime() -> Any:
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.__cxa_demangle.restype = ctypes.c_void_p
        return library
    return None
