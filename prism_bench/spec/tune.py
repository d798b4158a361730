"""What may vary in how a kernel is launched without changing what it computes: the space that tuning searches."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from prism_bench.errors import SpecError, UsageError
from prism_bench.spec import byname
from prism_bench.spec.rule import Rule


@dataclass(frozen=True)
class Tune:
    """Values of each name, the default first: `Tune(block=(256, 128, 512), groups=(1, 2, 4))`.

    Launches and derived sizes ask for the names as for axes. `rules` are what a configuration must keep at a workload;
    they may ask for axes, derived sizes and `device` too. `default` has a function of axes and parameters for each name
    whose default depends on them.
    """

    values: Mapping[str, tuple[Any, ...]]
    rules: tuple[Rule, ...] = ()
    default: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])

    def __init__(
        self,
        *,
        rules: Iterable[Rule] = (),
        default: Mapping[str, Callable[..., Any]] | None = None,
        **values: Iterable[Any],
    ) -> None:
        object.__setattr__(self, "values", {name: tuple(among) for name, among in values.items()})
        object.__setattr__(self, "rules", tuple(rules))
        object.__setattr__(self, "default", dict(default or {}))
        self._refuse_empty()

    def _refuse_empty(self) -> None:
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

    def defaults(self, axes: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the default of every name at a workload."""
        return {
            name: byname.call(self.default[name], axes, f"{where}: default of '{name}'")
            if name in self.default
            else among[0]
            for name, among in self.values.items()
        }

    def product(self, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Yield every combination of the values of these names, whether or not it keeps the rules."""
        for combined in product(*(self.values[name] for name in names)):
            yield dict(zip(names, combined, strict=True))

    def broken(self, offered: Mapping[str, Any], where: str) -> Rule | None:
        """Return the first rule that a configuration breaks, None if it keeps them all."""
        return next((rule for rule in self.rules if not byname.call(rule.holds, offered, f"{where}: tune")), None)

    def parsed(self, text: str, where: str) -> dict[str, Any]:
        """Return the configuration that `block=128,groups=2` means; raise a UsageError that lists what is possible."""
        chosen: dict[str, Any] = {}
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


def written(configuration: Mapping[str, object]) -> str:
    """Return `block=128,groups=2` of a configuration."""
    return ",".join(f"{name}={value}" for name, value in configuration.items())
