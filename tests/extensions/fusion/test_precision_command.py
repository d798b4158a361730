"""`prism-bench precision`: the table, JSON, exit codes."""

PRODUCT = "fused_matmul_bias_activation"
NUMPY = ("--backend", "numpy_reference")


def test_what_was_tried_and_chosen_is_shown(shell):
    done = shell("precision", *NUMPY)
    assert 0 == done.code
    assert f"{PRODUCT}:float16" in done.out
    assert "too far off" in done.out
    assert "float16 is the cheapest by bytes that must move" in done.out


def test_json(shell):
    (found,) = shell("precision", PRODUCT, "--within", "0.1", "--json", *NUMPY).json
    assert ("float8", 0.1) == (found["chosen"], found["within"])
    tried = ["float32", "three_bfloat16", "float16", "tf32", "bfloat16", "float8"]
    assert tried == [one["precision"] for one in found["tried"]]


def test_it_ends_with_1_where_none_is_good_enough(shell):
    done = shell("precision", PRODUCT, "--within", "1e-12", *NUMPY)
    assert 1 == done.code
    assert "no precision is within that" in done.out


def test_mistakes_are_told(shell):
    assert "--within is -1.0: an error greater than 0" in shell("precision", "--within", "-1", *NUMPY).err
    wrong = shell("precision", "fused_matmul", *NUMPY)
    assert (2, True) == (wrong.code, "unknown program 'fused_matmul'; did you mean" in wrong.err)
