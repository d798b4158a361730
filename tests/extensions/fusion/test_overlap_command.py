"""`prism-bench overlap`: the ledger without a GPU, JSON, mistakes."""

SMALL = ("--chunk", "vector_add[n=50]", "--filter", "relu[n=9]", "--filter", "vector_add[n=50]")
NUMPY = ("--backend", "numpy_reference")


def test_the_ledger_without_times(shell):
    done = shell("overlap", *SMALL, *NUMPY)
    assert 0 == done.code
    assert "4 chunks of vector_add[n=50] on 3 lanes" in done.out
    assert "relu[n=9] next to vector_add[n=50], 2 evaluations each" in done.out
    assert "no times: the CPU does one after the other; results of all forms are the same" in done.out


def test_json(shell):
    chunks, beside = shell("overlap", *SMALL, *NUMPY, "--json").json
    assert ["copies in", "kernels", "copies out", "one lane", "3 lanes"] == [row["name"] for row in chunks["rows"]]
    assert [2, 2, 4, 4] == [row["launches"] for row in beside["rows"]]
    assert all(row["median"] is None for row in chunks["rows"])


def test_an_unknown_case_is_told(shell):
    wrong = shell("overlap", "--chunk", "vector_ad[n=50]", *NUMPY)
    assert (2, True) == (wrong.code, "unknown case 'vector_ad[n=50]'" in wrong.err)
