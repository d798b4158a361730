"""The registry of libraries, the extra that installs them, and notes on libraries that are no peers."""

import json
import tomllib
from pathlib import Path

import pytest

from prism_bench.report.terminal.catalogue import cases_json
from prism_bench.spec.peer import LIBRARIES, Library
from tests.built_in import CATALOGUE

ROOT = Path(__file__).parents[2]
STRONG = [library for library in LIBRARIES.values() if library.is_strong]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SPECS = [case.spec for case in {case.kernel: case for case in CATALOGUE.cases()}.values()]


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=lambda library: library.name)
def test_every_library_has_a_module_a_distribution_and_an_array_package(library: Library) -> None:
    assert library.name.isidentifier()
    assert all(part.isidentifier() for part in library.module.split("."))
    assert library.distribution
    assert library.arrays in ("torch", "cupy", "jax")
    assert library.extra in EXTRAS


@pytest.mark.parametrize("library", STRONG, ids=lambda library: library.name)
def test_the_extra_installs_every_strong_library_with_a_least_version(library: Library) -> None:
    wanted = [one.partition(";")[0].strip() for one in EXTRAS["peers-strong"]]
    assert any(one.startswith((f"{library.distribution}>=", f"{library.distribution}==")) for one in wanted)


def test_notes_on_libraries_are_of_the_registry_and_not_of_the_spec_s_own_peers() -> None:
    odd = [(spec.name, name) for spec in SPECS for name in spec.looked_at
           if name not in LIBRARIES or name in {spec.peer(one).library.name for one in spec.peers}]  # fmt: skip
    assert [] == odd


def test_a_variant_drops_the_notes_with_the_peers_and_the_json_list_shows_them() -> None:
    spec = CATALOGUE.kernel("gelu_activation")
    assert "gated" in spec.looked_at["liger"]
    assert {} == spec.with_variant("tanh").looked_at
    case = CATALOGUE.case("gelu_activation[n=1000]")
    assert dict(spec.looked_at) == json.loads(json.dumps(cases_json([case])))[0]["looked_at"]
