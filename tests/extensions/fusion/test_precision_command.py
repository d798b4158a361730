"""`prism-bench tune --precision`: the table, JSON, exit codes."""

PRODUCT = "fused_matmul_bias_activation"
NUMPY = ("--backend", "numpy_reference")


def test_what_was_tried_and_chosen_is_shown(shell):
    done = shell("tune", "--precision", *NUMPY)
    assert 0 == done.code
    assert f"{PRODUCT}:float16" in done.out
    assert "too far off" in done.out
    assert "float16 is the cheapest by bytes that must move" in done.out


def test_json(shell):
    (found,) = shell("tune", "--precision", PRODUCT, "--tolerance", "0.1", "--json", *NUMPY).json
    assert ("float8", 0.1) == (found["chosen"], found["within"])
    tried = ["float32", "three_bfloat16", "float16", "tf32", "bfloat16", "float8"]
    assert tried == [one["precision"] for one in found["tried"]]


def test_it_ends_with_1_where_none_is_good_enough(shell):
    done = shell("tune", "--precision", PRODUCT, "--tolerance", "1e-12", *NUMPY)
    assert 1 == done.code
    assert "no precision is within that" in done.out


def test_inputs_are_read_from_a_file(shell, tmp_path):
    import numpy as np

    np.savez(tmp_path / "inputs.npz", x=np.ones(3))
    wrong = shell("tune", "--precision", PRODUCT, tmp_path / "inputs.npz", *NUMPY)
    assert 2 == wrong.code
    assert f"{tmp_path / 'inputs.npz'}" in wrong.err or "input" in wrong.err


def test_mistakes_are_told(shell):
    assert "--tolerance is -1: an error greater than 0" in shell("tune", "--precision", "--tolerance", "-1", *NUMPY).err
    wrong = shell("tune", "--precision", "fused_matmul", *NUMPY)
    assert (2, True) == (wrong.code, "unknown program 'fused_matmul'; did you mean" in wrong.err)
    assert (
        "--output x.json: leave it out with --precision"
        in shell("tune", "--precision", "--output", "x.json", *NUMPY).err
    )
