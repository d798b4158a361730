"""Every kernel and variant of the catalogue, unnamed, on the emulator, with all accesses watched.

Four fifths of the time are compilation, once for each mode. The mode that watches takes all edges, regimes and sizes,
in one thread order after the other; the other two modes, each edge in every order, and input regimes of variants, which
differ from those of their kernel in nothing but the variant, are left to `--thorough`.
"""

import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.emulator import ORDERS
from prism_bench.emulator.build import sanitizer_library
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.extensions.judge.task import hidden_cases
from prism_bench.run.verification import KnownReference, complaint, passed, verify
from prism_bench.spec.kernel import CUDA
from tests.built_in import CATALOGUE

S0_COST = 4_000_000  # bytes and operations of an S0 case up to which it runs here too: some tenths of a second
SANITIZED_BYTES = 1 << 19  # an edge that moves more is left to the other passes
DRAWN = range(100, 130)  # seeds that no author has seen
SECRETS = range(5)  # that sizes are drawn by, two each
DRAWN_COST = 400_000  # of a case that is drawn for each of them
SANITIZED_LARGE = 3  # edges of each kernel in the sanitizers' pass, the largest first; the smallest comes besides


def cost(case):
    """Bytes and operations."""
    return case.sizes.bytes_moved + (case.sizes.flops or 0)


EDGES, REGIMES, S0 = {}, {}, {}
for _case in CATALOGUE.edges():
    (REGIMES if _case.is_regime else EDGES).setdefault(_case.kernel, []).append(_case)
for _case in CATALOGUE.cases(labels=("S0",)):
    if cost(_case) <= S0_COST:
        S0.setdefault(_case.kernel, []).append(_case)


def by_source(names, variants=()):
    """Parameters for the names; those of one source go to one test worker, which builds their library once.

    Variants are marked with `variants`.
    """
    marks = {name: [pytest.mark.xdist_group(names[name][0].spec.source.stem)] for name in names}
    marked = [pytest.param(name, marks=[*marks[name], *(variants if ":" in name else ())]) for name in names]
    return pytest.mark.parametrize("name", marked)


@pytest.fixture(scope="module")
def emulator():
    """The emulator; without a C++ compiler nothing here can run."""
    try:
        return EmulatorBackend()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def watched(emulator):
    """A function that runs cases with every access watched, each in the next thread order, and returns complaints."""
    backends = [{f"race, {order}": EmulatorBackend("race", order)} for order in ORDERS]

    def complaints(cases):
        ways = [(case, backends[index % len(backends)]) for index, case in enumerate(cases)]
        return [words for case, passes in ways for words in wrong(case, passes)]

    return complaints


@pytest.fixture(scope="module")
def sanitizers(emulator):
    """The emulator's sanitized mode."""
    try:
        sanitizer_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    return EmulatorBackend("address")


def wrong(case, backends, seeds=(0,)):
    """What the first of the backends to disagree says, or nothing; nothing either of a case that is not emulated.

    The usual poison is a NaN, which may be the right output of an input regime: theirs is random.
    """
    known = KnownReference()
    for way, backend in backends.items():
        try:
            entries = verify(backend, case, seeds, known, random_poison=case.is_regime)
        except BackendUnavailable:
            return []
        except PrismBenchError as error:
            return [f"{way}: {error}"]
        if not passed(entries):
            return [f"{way}: {complaint(case, backend.name, entries)}"]
    return []


def watched_first(passes):
    """The passes, the watching one first: what lies out of bounds is told there before it can crash another pass."""
    return dict(sorted(passes.items(), key=lambda item: item[0] != "race"))


def few(cases):
    """A bounded choice: the largest ones of moderate size, and the smallest of all."""
    by_size = sorted(cases, key=lambda case: case.sizes.bytes_moved)
    moderate = [case for case in by_size if case.sizes.bytes_moved <= SANITIZED_BYTES]
    return list(dict.fromkeys([*moderate[-SANITIZED_LARGE:], by_size[0]]))


@by_source(EDGES)
def test_its_edges_are_right_without_a_race(watched, name):
    assert [] == watched(EDGES[name])


@pytest.mark.thorough
@by_source(EDGES)
def test_its_edges_are_right_in_every_order(emulator, name):
    passes = watched_first(emulator.passes(EDGES[name][0]))
    orders = ["race", "fast, forward", "fast, reverse", "fast, shuffled"]
    assert (orders if EDGES[name][0].spec.language == CUDA else ["interpreter"]) == list(passes)
    assert [] == [words for case in EDGES[name] for words in wrong(case, passes)]


@by_source(REGIMES, variants=[pytest.mark.thorough])
def test_its_edges_are_right_in_every_input_regime(watched, name):
    assert [] == watched(REGIMES[name])


@by_source(S0)
def test_its_documents_size_is_right_on_the_emulator(watched, name):
    assert [] == watched(S0[name])


@pytest.mark.thorough
@by_source(EDGES)
def test_it_is_right_without_a_race_at_sizes_that_are_drawn(watched, name):
    """Edges are what an author thought of: a branch that none of them takes may race, or read what nothing wrote."""
    known = [case for case in (*EDGES[name], *S0.get(name, ())) if not case.golden]
    assert [] == watched([case for secret in SECRETS for case in hidden_cases(EDGES[name][0].spec, known, secret)])


@pytest.mark.thorough
@by_source(EDGES)
def test_some_of_its_edges_are_clean_under_the_sanitizers(sanitizers, name):
    assert [] == [words for case in few(EDGES[name]) for words in wrong(case, {"address": sanitizers})]


@pytest.mark.thorough
@by_source(EDGES)
def test_a_right_kernel_is_right_whatever_is_drawn(emulator, name):
    """The judge and replays of claims draw seeds: a tolerance that some draw misses calls right kernels wrong."""
    drawn = [case for case in (*EDGES[name], *REGIMES.get(name, ())) if not case.golden and cost(case) <= DRAWN_COST]
    assert [] == [words for case in drawn for words in wrong(case, {"fast": emulator}, DRAWN)]


def test_every_kernel_has_an_edge_to_run_here():
    assert set() == set(CATALOGUE.kernels) - {name.partition(":")[0] for name in EDGES}
    assert len(S0) > len(CATALOGUE.kernels) / 2
