"""The README's kernel of one's own is real: both files are taken from the page and verified. Its items are served."""

import re
from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.run.verification import passed, verify

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture
def catalogue(tmp_path):
    """A folder with the two files as the README prints them."""
    family = tmp_path / "basic"
    family.mkdir()
    blocks = re.findall(r"`kernels/basic/(\S+?)`\n\n```\w+\n(.*?)```", README.read_text(), re.DOTALL)
    for name, text in blocks:
        (family / name).write_text(text)
    assert sorted(name for name, _ in blocks) == ["scale.cu", "scale.py"]
    return discover(tmp_path)


def test_the_printed_kernel_is_a_catalogue_without_problems(catalogue):
    assert () == catalogue.problems
    assert ["scale"] == list(catalogue.kernels)


@pytest.mark.parametrize("backend", ["numpy_reference", "emulator"])
def test_the_printed_kernel_is_right(catalogue, backend):
    try:
        opened = open_backend(backend)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    for case in [*catalogue.edges(), *catalogue.cases(labels=["S0"])]:
        assert passed(verify(opened, case)), case.name


def test_the_printed_item_is_served(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "Executor(" in block]
    exec(compile(code, "README.md", "exec"), {})
    assert re.fullmatch(r"\[-?\d+\.\d+\]\n", capsys.readouterr().out)
