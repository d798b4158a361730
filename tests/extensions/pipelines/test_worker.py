"""Tasks of the worker that measures pipelines."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.extensions.pipelines.definitions import pipelines
from prism_bench.extensions.pipelines.worker import tasks_of
from tests.built_in import CATALOGUE


def test_tasks_are_forms_of_pipelines():
    toy = pipelines(["image", "dendritic"])
    assert ("image:graph", "dendritic:graph") == tasks_of(toy, ("graph",), "S0", CATALOGUE)
    with pytest.raises(UsageError, match="unknown form 'fast'"):
        tasks_of(toy, ("fast",), "S0", CATALOGUE)
