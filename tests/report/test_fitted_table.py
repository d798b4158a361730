"""Tables as wide as the terminal: what identifies and judges a row stays at any width, and no line is longer."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from prism_bench.analysis.bounds.profiles import rows
from prism_bench.record import store
from prism_bench.report.terminal.profile import profile_table
from prism_bench.report.terminal.tables import FittedColumn, fitted

PROFILES = Path(__file__).resolve().parents[2] / "reports" / "profiles" / "nvidia-h200"
WIDTHS = (80, 120, 200)


def printed(table, width):
    stream = io.StringIO()
    Console(file=stream, width=width, legacy_windows=False).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


COLUMNS = (FittedColumn("kernel"), FittedColumn("note", goes=2), FittedColumn("energy", numbers=True, goes=1),
           FittedColumn("ratio", numbers=True), FittedColumn("verdict"))  # fmt: skip


def test_columns_go_in_their_order_and_are_named():
    row = (("a_kernel_with_a_name:and_a_variant", "words " * 4, "1.23 J", "0.83x", "missed"), None)
    wide, less, least = (printed(fitted("t", COLUMNS, [row]), width) for width in (120, 74, 52))
    assert "words" in wide[2] and "1.23 J" in wide[2] and "no room" not in "".join(wide)
    assert "words" in less[2] and "1.23 J" not in less[2] and "no room for energy:" in " ".join(less)
    assert "words" not in least[2] and "no room for energy, note:" in " ".join(least)
    for lines in (wide, less, least):
        assert "0.83x" in lines[2] and "missed" in lines[2] and "variant" in lines[2]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_profile_names_kernel_bottleneck_and_time_at_any_width(width):
    lines = rows(store.read(max(PROFILES.glob("*.json.gz"))))
    shown = printed(profile_table(lines), width)
    assert max(map(len, shown)) <= width
    assert all(word in shown[1] for word in ("kernel", "label", "bound", "duration"))
    assert len(lines) <= len(shown) - 2
    assert all(any(line.startswith(row["case"].split("[")[0][:7]) for line in shown) for row in lines)
