"""Nouns of a spec: kernel, workload, arguments, launch, inputs, tolerance, tuning, budget, peer, case."""
