"""`prism-bench profile --overlap`: the ledger without a GPU, JSON, mistakes."""

ONE, TWO = "vector_add[n=50]", "relu[n=9]"
NUMPY = ("--overlap", "--backend", "numpy_reference")


def test_a_case_is_run_in_chunks_without_times(shell):
    done = shell("profile", ONE, *NUMPY)
    assert 0 == done.code
    assert "4 chunks of vector_add[n=50] on 3 lanes" in done.out
    assert "evaluations each" not in done.out
    assert "no times: the CPU does one after the other; results of all forms are the same" in done.out


def test_cases_are_run_next_to_each_other(shell):
    done = shell("profile", TWO, ONE, *NUMPY)
    assert 0 == done.code
    assert "relu[n=9] next to vector_add[n=50], 2 evaluations each" in done.out
    assert "chunks of" not in done.out


def test_json(shell):
    (chunks,) = shell("profile", ONE, *NUMPY, "--json").json
    (beside,) = shell("profile", TWO, ONE, *NUMPY, "--json").json
    assert ["copies in", "kernels", "copies out", "one lane", "3 lanes"] == [row["name"] for row in chunks["rows"]]
    assert [2, 2, 4, 4] == [row["launches"] for row in beside["rows"]]
    assert all(row["median"] is None for row in chunks["rows"])


def test_mistakes_are_told(shell):
    wrong = shell("profile", "vector_ad[n=50]", *NUMPY)
    assert (2, True) == (wrong.code, "unknown case 'vector_ad[n=50]'" in wrong.err)
    chained = shell("profile", ONE, *NUMPY, "--chain")
    assert (2, True) == (chained.code, "--chain: leave it out with --overlap" in chained.err)
