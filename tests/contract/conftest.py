"""The product that contract tests run, and the folder that its commands run in."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.contract.commands import CHECKOUT, EXECUTABLE, Product
from tests.contract.folder import fill
from tests.contract.normalise import Normaliser


@pytest.fixture(scope="session")
def product(tmp_path_factory):
    """The command line, in forked children, or the executable that PRISM_BENCH_COMMAND names."""
    home = tmp_path_factory.mktemp("home")
    cache = Path(os.environ.get("PRISM_BENCH_CACHE") or Path.home() / ".cache" / "prism_bench")  # the emulator is there
    made = Product(home, cache, os.environ.get(EXECUTABLE))
    yield made
    made.close()


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A function that returns a new folder with all data, each below another parent."""
    original = tmp_path_factory.mktemp("contract") / "original"
    original.mkdir()
    fill(original)

    def copy():
        folder = tmp_path_factory.mktemp("place") / "work"
        shutil.copytree(original, folder)
        return folder

    return copy


@pytest.fixture
def normaliser(product):
    """What is local here."""

    def made(folder):
        package = product.package
        return Normaliser(
            {
                str(folder): "FOLDER", product.environment["PRISM_BENCH_CACHE"]: "CACHE",
                product.environment["HOME"]: "HOME", str(package): "PACKAGE",
                str(package.parent / "kernels"): "KERNELS", str(package / "kernels"): "KERNELS",
                str(CHECKOUT / "kernels"): "KERNELS",
                str(Path(product.python).parent.parent): "ENVIRONMENT", str(CHECKOUT): "CHECKOUT",
            },
            datetime.now(UTC).replace(tzinfo=None),
        )  # fmt: skip

    return made
