"""A mistake planted into a real kernel is found on the CPU, with its file and its line."""

from pathlib import Path

import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.errors import BackendUnavailable, VerificationFailed
from tests.kernels.planted_bugs import BUGS, plant


@pytest.fixture
def backend(request):
    """The emulator in the bug's mode."""
    try:
        return EmulatorBackend(BUGS[request.param].mode)
    except BackendUnavailable as error:
        pytest.skip(str(error))


def told(findings):
    """The text of every line that the findings name."""
    places = [(access.file, access.line) for finding in findings for access in finding.accesses]
    return [Path(file).read_text().splitlines()[line - 1] for file, line in places]


@pytest.mark.parametrize(("backend", "name"), [(name, name) for name in BUGS], indirect=["backend"], ids=list(BUGS))
def test_it_is_found_at_its_line(backend, name, tmp_path):
    bug = BUGS[name]
    case = plant(bug, tmp_path)
    with backend.prepare(case, case.inputs(0)) as runnable:
        with pytest.raises(VerificationFailed, match=bug.kind):
            runnable()
        findings = [finding for report in runnable.reports for finding in report.findings if finding.kind == bug.kind]
    lines = told(findings)
    assert lines
    assert [] == [line for line in lines if not any(words in line for words in bug.at)]
