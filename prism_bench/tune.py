"""What may vary in how a kernel is launched without changing what it computes: the space that tuning searches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from prism_bench import byname
from prism_bench.errors import SpecError, UsageError


@dataclass(frozen=True)
class Tune:
    """`Tune(block=(256, 128, 512), groups=(1, 2, 4))`: the values of each name, the default first.

    Launches and derived sizes ask for the names as for axes. `rules` are what a configuration must keep at a workload;
    they may ask for axes, derived sizes and `device` too. `default` has a function of axes and parameters for each name
    whose default depends on them.
    """

    values: Mapping[str, tuple]
    rules: tuple = ()
    default: Mapping[str, Callable] = field(default_factory=dict)

    def __init__(self, *, rules=(), default=None, **values):
        object.__setattr__(self, "values", {name: tuple(among) for name, among in values.items()})
        object.__setattr__(self, "rules", tuple(rules))
        object.__setattr__(self, "default", dict(default or {}))
        self._refuse_empty()

    def _refuse_empty(self):
        if not self.values:
            raise SpecError("Tune() names nothing that may vary: Tune(block=(256, 128, 512))")
        for name, among in self.values.items():
            if not among:
                raise SpecError(f"tune: '{name}' has no value to take")
            if len(set(among)) < len(among):
                raise SpecError(f"tune: '{name}' names a value twice: {', '.join(map(str, among))}")
        odd = sorted(set(self.default) - set(self.values))
        if odd:
            raise SpecError(f"tune: a default for '{odd[0]}', which is none of: {', '.join(self.values)}")

    def defaults(self, axes: Mapping, where: str) -> dict:
        """The value of every name at a workload, as long as nobody chose another."""
        return {
            name: byname.call(self.default[name], axes, f"{where}: default of '{name}'")
            if name in self.default
            else among[0]
            for name, among in self.values.items()
        }

    def product(self, names: tuple[str, ...]) -> Iterator[dict]:
        """Every combination of the values of these names, whatever the rules say."""
        for combined in product(*(self.values[name] for name in names)):
            yield dict(zip(names, combined, strict=True))

    def broken(self, offered: Mapping, where: str):
        """The first rule that a configuration breaks, None where it keeps them all."""
        return next((rule for rule in self.rules if not byname.call(rule.holds, offered, f"{where}: tune")), None)

    def parsed(self, text: str, where: str) -> dict:
        """The configuration that `block=128,groups=2` writes; a UsageError that says what could have stood there."""
        chosen = {}
        for word in text.split(","):
            name, _, value = word.partition("=")
            if name not in self.values:
                raise UsageError(f"{where}: '{word}' sets none of: {', '.join(self.values)}")
            fitting = [one for one in self.values[name] if str(one) == value]
            if not fitting:
                among = ", ".join(map(str, self.values[name]))
                raise UsageError(f"{where}: {name} is '{value}'; it is one of {among}")
            chosen[name] = fitting[0]
        return chosen


def written(configuration: Mapping) -> str:
    """`block=128,groups=2`."""
    return ",".join(f"{name}={value}" for name, value in configuration.items())
