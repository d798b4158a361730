"""Errors of the program on their way from a worker to the process that asked."""

import msgspec

from prism_bench import errors
from prism_bench.errors import PrismBenchError

_KINDS: dict[str, type[PrismBenchError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, PrismBenchError)
}


class Refusal(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """An expected error as a message: the name of its class in `prism_bench.errors`, and its text."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: PrismBenchError) -> "Refusal":
        """Return the message for an error; one of a class elsewhere becomes its nearest base class in the tree."""
        return cls(next(base.__name__ for base in type(error).__mro__ if _KINDS.get(base.__name__) is base), str(error))

    def error(self) -> PrismBenchError:
        """Return the error, to be raised; an unknown class becomes the base class of all errors."""
        return _KINDS.get(self.kind, PrismBenchError)(self.text)
