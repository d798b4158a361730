"""The random kernels' references draw from the distributions they name; the kernels are held to their very draws."""

from importlib import import_module

import numpy as np
import pytest
from scipy import stats

from prism_bench.spec import arguments
from tests.built_in import CATALOGUE

PHILOX = import_module("prism_bench_catalogue.include.numbers.philox")
UNLIKELY = 1e-4  # of the fixed seeds below


def drawn_shots(p, shots, seed):
    psi = np.stack((np.sqrt(p), np.zeros(len(p))), axis=1)
    spec = CATALOGUE.kernel("quantum_measurement").with_variant("shots")
    values = {"psi": psi, "qubits": int(np.log2(len(p))), "shots": shots, "seed": seed, "mask": len(p) - 1}
    return arguments.call(spec.reference, values | {"xp": np}, spec.name)[1]


def drawn_tokens(logits, rows, seed, **parameters):
    values = {"logits": np.tile(logits, (rows, 1)), "k": len(logits), "temperature": 1.0, "top_p": 1.0, "seed": seed}
    spec = CATALOGUE.kernel("top_k_sampling")
    return arguments.call(spec.reference, values | parameters | {"xp": np}, spec.name)[2]


def test_philox_gives_its_known_answer():
    words = PHILOX.philox(np.zeros(1, dtype="uint64"), 0, np)
    assert [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8] == [int(word[0]) for word in words]


@pytest.mark.parametrize("seed", [0, 1234, 2**64 - 3])
def test_uniforms_are_uniform_and_do_not_follow_their_counters(seed):
    u = PHILOX.uniforms(200_000, seed, np)
    assert stats.kstest(u, "uniform").pvalue > UNLIKELY
    assert stats.kstest((u[1:] - u[:-1]) % 1, "uniform").pvalue > UNLIKELY


@pytest.mark.parametrize("seed", [1, 2])
def test_shots_have_the_frequencies_of_borns_rule(seed):
    p = np.array([0.4, 0.0, 0.1, 0.2, 0.05, 0.05, 0.15, 0.05])
    counts = np.bincount(drawn_shots(p, 100_000, seed), minlength=len(p))
    assert 0 == counts[1]
    assert stats.chisquare(counts[p > 0], 100_000 * p[p > 0]).pvalue > UNLIKELY


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_have_the_frequencies_of_their_softmax(temperature):
    logits = np.array([0.3, 2.0, -1.0, 1.2, 0.9])
    counts = np.bincount(drawn_tokens(logits, 50_000, 7, temperature=temperature), minlength=len(logits))
    weights = np.exp(logits / temperature)
    assert stats.chisquare(counts, 50_000 * weights / weights.sum()).pvalue > UNLIKELY


def test_the_tail_beyond_top_p_is_never_drawn():
    assert {1, 3} == set(drawn_tokens(np.log([0.1, 0.5, 0.05, 0.3, 0.05]), 2000, 3, top_p=0.75).tolist())
