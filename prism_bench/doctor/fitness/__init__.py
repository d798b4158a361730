"""Whether a GPU is fit to measure on: readings and a noise probe in, one answer out, with what to change.

`facts` has the plain values, `device_rules` and `noise_rules` judge them, `board` reads the device, `probe` launches.
"""

from prism_bench.doctor.fitness.examine import examine_gpu
from prism_bench.doctor.fitness.facts import FitnessFacts, FitnessProblem, GpuReading, ProbedKernel
from prism_bench.doctor.fitness.judge import RULES, Fitness, judged_fitness

__all__ = [
    "RULES", "Fitness", "FitnessFacts", "FitnessProblem", "GpuReading", "ProbedKernel", "examine_gpu",
    "judged_fitness",
]  # fmt: skip
