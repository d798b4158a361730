"""Tests of extensions are left out where a change cannot reach them, and only there."""

import pytest

from tests.changed import changed_since, unreached, users

USERS = {"ci": {"ci"}, "judge": {"judge", "claims"}, "claims": {"claims"}}


@pytest.mark.parametrize(
    ("changed", "left_out"),
    [
        ([], {"ci", "judge", "claims"}),
        (["DECISIONS.md", "CONTRIBUTING.md"], {"ci", "judge", "claims"}),
        (["reports/claims/list.toml"], set()),
        (["docs/pages/index.md"], set()),
        (["prism_bench/extensions/judge/task.py"], {"ci"}),
        (["tests/extensions/ci/test_nightly.py", "CHANGELOG.md"], {"judge", "claims"}),
        (["prism_bench/units.py"], set()),
        (["prism_bench/extensions/judge/task.py", "kernels/basic/vector_add.cu"], set()),
        (["tests/extensions/conftest.py"], set()),
        (["pyproject.toml"], set()),
    ],
)
def test_only_what_a_change_cannot_reach_is_left_out(changed, left_out):
    assert left_out == unreached(USERS, changed)


def test_an_unknown_commit_leaves_nothing_out():
    assert changed_since("0" * 40) is None


def test_an_extension_that_uses_another_is_reached_with_it():
    found = users()
    assert {"judge", "claims"} <= found["judge"]
    assert {"memory"} <= found["memory"] and "judge" not in found["memory"]
