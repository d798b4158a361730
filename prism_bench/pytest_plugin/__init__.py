"""pytest plugin: the fixture `prism` verifies and times a callable, keeps its time as a series, and judges its limits.

Only pytest is imported until a test uses the fixture.
"""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from prism_bench.pytest_plugin.journal import Journal
    from prism_bench.pytest_plugin.outcome import TestedTime

_JOURNAL = pytest.StashKey["Journal"]()
_HANDED_OVER = "prism_bench"  # the key of the journal of a pytest-xdist worker


class Prism:
    """Value of the fixture `prism`: call it to verify and time one function.

    Parameters of the call
    ----------------------
    function
        Timed function, called with `arrays`; its work goes to the current CUDA stream, and it leaves its inputs
        unchanged. Or the name of a kernel or case of the catalogue, which is verified as in `prism-bench run`.
    *arrays
        Arguments of every call of `function`, `peer` and `reference`.
    bytes, flops
        Bytes moved and operations done by one call.
    at_most
        Longest time, in seconds or as text: `"5 us"`.
    at_least
        Least share of the copy ceiling of this machine, which is measured once a session: `0.8` or `"80 %"`. It
        needs `bytes`.
    peer
        Another function of the same arrays, timed in the same rounds.
    speedup
        Least time of the peer over that of the function, 1 where a `peer` is given; 0 only shows it. A kernel of
        the catalogue is compared with its fastest peer if this is given.
    reference
        Correct result, or a function of the arrays that returns it; without one, the result of the peer.
    out
        Array, or arrays, that the function writes instead of returning its result. They are filled with NaN
        (91 for integers) before every verified call.
    rtol, atol
        Allowed error: the larger of `rtol` times the correct value and `atol`. The default depends on the type of
        the result, as in `torch.testing.assert_close`.
    mode
        `cold`: caches are cleared before each call; `hot`: a CUDA graph of many calls.
    label
        Workload of a kernel that is named without a workload.

    Attributes
    ----------
    case : str
        Name of the series: the test's node id.
    results : list of TestedTime
        Results of the calls in this test, failed calls included.
    """

    def __init__(self, journal: "Journal", case: str) -> None:
        self.case = case
        self.results: list[TestedTime] = []
        self._journal = journal

    def __call__(
        self,
        function: Callable[..., object] | str,
        *arrays: object,
        bytes: int | None = None,
        flops: int | None = None,
        at_most: float | str | None = None,
        at_least: float | str | None = None,
        peer: Callable[..., object] | None = None,
        speedup: float | None = None,
        reference: object = None,
        out: object = None,
        rtol: float | None = None,
        atol: float | None = None,
        mode: Literal["cold", "hot"] = "cold",
        label: str = "S0",
    ) -> "TestedTime":
        """Verify and time a function; fail the test if it is wrong or a limit is missed beyond the noise.

        Arguments are those of the class's documentation. Returns the times with their intervals, the verification and
        the verdict on each limit. Raises UsageError if an argument is wrong or a limit lacks another argument.
        """
        __tracebackhide__ = True
        from prism_bench.errors import UsageError
        from prism_bench.pytest_plugin.outcome import TimedTest

        name = f"{self.case} {len(self.results) + 1}" if self.results else self.case
        try:
            test = TimedTest(
                function,
                arrays,
                bytes=bytes,
                flops=flops,
                at_most=at_most,
                at_least=at_least,
                peer=peer,
                speedup=speedup,
                reference=reference,
                out=out,
                rtol=rtol,
                atol=atol,
                mode=mode,
                label=label,
            )
            tested = self._journal.tested(name, test)
        except UsageError as error:  # raised anew: the traceback ends at the line of the test
            raise UsageError(str(error)) from None
        self.results.append(tested)
        if tested.failed:
            pytest.fail(str(tested), pytrace=False)
        return tested


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options; `[tool.prism-bench.pytest]` of the project holds their defaults."""
    group = parser.getgroup("prism-bench", "times of GPU kernels (fixture `prism`)")
    group.addoption("--prism-off", action="store_true", help="Skip every test that uses the fixture prism.")
    group.addoption("--prism-backend", metavar="NAME", help="Time on this backend: cuda (default), or null for trials.")
    group.addoption("--prism-records", metavar="FOLDER", help="Keep the session's run record below this folder.")


@pytest.fixture
def prism(request: pytest.FixtureRequest) -> Prism:
    """Verify and time a function: `prism(fn, x, bytes=..., at_most="5 us", peer=other)`; see `Prism.__call__`."""
    from prism_bench.errors import BackendUnavailable

    journal = _opened(request.config)
    if journal.settings.off:
        pytest.skip("prism-bench is off: nothing is timed")
    try:
        journal.require_backend()
    except BackendUnavailable as error:
        pytest.skip(f"prism-bench: {error}")
    return Prism(journal, request.node.nodeid)


def _opened(config: pytest.Config) -> "Journal":
    """Return the session's journal, opened on first use."""
    if _JOURNAL not in config.stash:
        from prism_bench.pytest_plugin.journal import Journal, settings_of

        config.stash[_JOURNAL] = Journal(settings_of(config))
    return config.stash[_JOURNAL]


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Write the session's record; a worker of pytest-xdist hands its cases over instead."""
    journal = session.config.stash.get(_JOURNAL, None)
    if journal is not None:
        handed = getattr(session.config, "workeroutput", None)
        if handed is not None:
            handed[_HANDED_OVER] = journal.packed()
        elif journal.close() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over the journal of a pytest-xdist worker."""
    packed = getattr(node, "workeroutput", {}).get(_HANDED_OVER)
    if packed:
        _opened(getattr(node, "config")).unpack(packed)  # noqa: B009 - xdist has no types


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one line for each time, and the path of the record."""
    journal = config.stash.get(_JOURNAL, None)
    if journal is not None and journal.lines:
        terminalreporter.section("prism-bench")
        for line in journal.lines:
            terminalreporter.write_line(line)
