"""The environment variables that the package reads are in the list of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "pages" / "install.md"
NAME = re.compile(r"\bPRISM_BENCH_[A-Z_]*[A-Z]\b")
INTERNAL = {
    "PRISM_BENCH_ASV_PROGRESS", "PRISM_BENCH_ASV_RECORD",  # from our own process to that of asv
    "PRISM_BENCH_NULL", "PRISM_BENCH_NULL_GPU",  # the script of the backend for tests
    "PRISM_BENCH_REGIONS", "PRISM_BENCH_REGION_SHARDS",  # macros
    "PRISM_BENCH_COMPLETE",  # of the shell's completion, which begins with an underscore
}  # fmt: skip


def test_every_environment_variable_is_in_the_list():
    texts = [path.read_text() for folder in ("prism_bench", "suites") for path in (ROOT / folder).rglob("*.py")]
    read = {name for text in texts for name in NAME.findall(text)} - INTERNAL
    listed = set(NAME.findall(PAGE.read_text().partition("## Environment variables")[2]))
    assert {"PRISM_BENCH_TOOLCHAIN", "PRISM_BENCH_CACHE"} <= read
    assert [] == sorted(read ^ listed)
