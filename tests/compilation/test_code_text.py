"""Comments are removed from CUDA C++, and nothing else."""

import pytest

from prism_bench.compilation.sources import without_comments


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("int a;  // one\n\n// two\nint b;", "int a;\nint b;"),
        ("int a /* one\n two */ = 3;", "int a   = 3;"),
        ('asm("// no comment" : "=r"(x));', 'asm("// no comment" : "=r"(x));'),
        ('text("a \\" // b"); // c', 'text("a \\" // b");'),
        ("c = '\"'; // d \"", "c = '\"';"),
        ("n = 1'000'000; // e", "n = 1'000'000;"),
    ],
)
def test_comments_are_removed(code, expected):
    assert expected == without_comments(code)
