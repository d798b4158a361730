"""Placeholders of a language's modules: a kernel's file is read without importing its compiler.

Only what the catalogue has to know is computed: the launch, the tuning space, the budgets. A kernel function stays
behind its decorator, which is a placeholder, too.
"""

import builtins
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from prism_bench.compilation.languages.language import Language
from prism_bench.errors import SpecError


class Placeholder:
    """Something of a module that was not imported, by its dotted name; it can be named and called, never computed."""

    def __init__(self, name: str, stand_ins: Mapping[str, Callable[..., Any]]) -> None:
        self._name, self._stand_ins = name, stand_ins

    def __repr__(self) -> str:
        return f"{self._name}, of a module that is not imported here"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{self._name} has no {name} while the catalogue is read")
        dotted = f"{self._name}.{name}"
        return self._stand_ins.get(dotted) or Placeholder(dotted, self._stand_ins)

    def __call__(self, *arguments: Any, **options: Any) -> "Placeholder":
        return Placeholder(f"{self._name}()", self._stand_ins)

    def __getitem__(self, key: object) -> "Placeholder":
        return Placeholder(f"{self._name}[]", self._stand_ins)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def _refuse(self, *_: object) -> NoReturn:
        raise SpecError(
            f"'{self._name}' is used while the catalogue is read, which imports no compiler: compute it in Python, or "
            "inside a kernel"
        )

    __iter__ = __bool__ = __int__ = __float__ = __index__ = __len__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _refuse
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _refuse


def reading_builtins(language: Language, suffix: str) -> dict[str, object]:
    """Return builtins whose `import` gives placeholders for the language's modules.

    Modules that catalogues share and whose names begin with the suffix, such as `include/languages/triton_rows.py`,
    import the compiler too: they are placeholders as well.
    """

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: tuple[str, ...] = (), level: int = 0
    ) -> Any:
        own = not level and name.partition(".")[0] in language.modules
        parts = fromlist if name.endswith(("include", "include.languages")) else (name.rpartition(".")[2],)
        shared = level and all(part.startswith(f"{suffix}_") for part in parts)
        if not own and not shared:
            return builtins.__import__(name, globals, locals, fromlist, level)
        return Placeholder(name if fromlist else name.partition(".")[0], language.stand_ins)

    return vars(builtins) | {"__import__": importing}
