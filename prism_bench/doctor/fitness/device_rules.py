"""Rules about the device: clocks, power, heat, memory errors, neighbours and how it is set up. Facts in, problems out.

Each rule returns its problem, or None where nothing speaks against measuring.
"""

from statistics import median

from prism_bench.doctor.fitness.facts import FitnessFacts, FitnessProblem
from prism_bench.monitor.quantities import HARMFUL, reasons_in
from prism_bench.record.measurement import CLOCK_SHARE
from prism_bench.units import bytes_text, rate_text, share_text

HOT = 80.0  # degrees Celsius, for devices that do not report where heat slows them down
MARGIN, LAST_MARGIN = 10.0, 3.0  # degrees below that point
BUSY_AT_REST = 0.05  # share of the driver's window in which somebody else's kernel ran
FULL_CLOCK = 0.98  # share of the highest clock below which a device is set or held lower
STEADY_CLOCK, STEADY_SHARE = 0.97, 0.95  # so many launches run within so much of the best clock
CAPPED = 0.02  # share of the readings in which the power limit may hold the clock down


def lost(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge whether the device answers."""
    reason = facts.reading.lost or (facts.evidence.lost if facts.evidence else None)
    if not reason:
        return None
    return FitnessProblem("no", reason, "the device fell off the bus, or its driver stopped",
                          "look at 'dmesg' for the Xid; reset the GPU or restart the machine")  # fmt: skip


def unread(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge whether clocks and their limits are known at all."""
    if facts.reading.lost or facts.value("clock_reasons") is not None:
        return None
    reason = facts.reading.missing.get("clock_reasons", "nothing was read")
    return FitnessProblem("unknown", reason, "without NVML nobody knows what holds the clock down",
                          "install nvidia-ml-py, and make libnvidia-ml.so.1 visible here (containers: --gpus all)"
                          )  # fmt: skip


def events(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge errors that the driver reported during the probe."""
    found = facts.evidence.events if facts.evidence else ()
    if not found:
        return None
    return FitnessProblem("no", ", ".join(found), "the driver reported errors during the probe",
                          "look them up in NVIDIA's list of Xids; reset the GPU")  # fmt: skip


def held_down(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge heat, power supply and hardware that hold the clock down, at rest and during the probe."""
    at_rest = reasons_in(facts.value("clock_reasons"))
    working = facts.evidence.reasons if facts.evidence else {}
    harm = [word for word in HARMFUL if word in at_rest or word in working]
    if not harm:
        return None
    return FitnessProblem("no", f"held down: {', '.join(harm)}", "heat, power supply or the board holds the clock down",
                          "look at cooling and power supply; times taken now would be refused")  # fmt: skip


def throttled(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge time during the probe in which heat or the board slowed the device, by the driver's own counters."""
    grown = facts.evidence.throttled if facts.evidence else {}
    causes = [f"{word} {grown[word]:.2g} s" for word in ("thermal", "board") if grown.get(word)]
    if not causes:
        return None
    return FitnessProblem("no", f"slowed down for: {', '.join(causes)}", "heat or the board's limits",
                          "let it cool, look at fans and power supply")  # fmt: skip


def power_capped(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge whether so light a load as the probe already meets the power limit."""
    evidence = facts.evidence
    share = evidence.reasons.get("sw power cap", 0.0) if evidence else 0.0
    if share <= CAPPED:
        return None
    return FitnessProblem("care", f"at the power limit in {share_text(share)} of the probe",
                          "the power limit holds the clock down even at a light load",
                          "raise it with 'nvidia-smi --power-limit=WATTS' as root, or lock a lower clock")  # fmt: skip


def power_limit(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge a power limit below the board's default."""
    limit, usual = facts.value("power_limit"), facts.value("default_power_limit")
    if limit is None or usual is None or limit >= usual - 0.5:
        return None
    return FitnessProblem("care", f"{limit:.0f} W of {usual:.0f} W", "an administrator lowered the power limit",
                          f"'nvidia-smi --power-limit={usual:.0f}' as root, or compare only with runs under this limit"
                          )  # fmt: skip


def clock_set_lower(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge clocks that an administrator set below the highest; locked ones at the highest are well."""
    highest, best = facts.value("max_sm_clock"), _best_clock(facts)
    if not highest or not best or not _is_set(facts) or best >= FULL_CLOCK * highest:
        return None
    found = f"{rate_text(best, 'Hz')} of {rate_text(highest, 'Hz')}, set by an administrator"
    return FitnessProblem("care", found, "times are right for this clock, and not comparable with those at another",
                          "unless meant so, 'nvidia-smi --reset-gpu-clocks' and '--reset-applications-clocks' as root"
                          )  # fmt: skip


def clock_too_low(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge a clock that stays low under load although nobody set it."""
    highest, clocks = facts.value("max_sm_clock"), facts.clocks
    if not highest or not clocks or _is_set(facts):
        return None
    best = max(clocks)
    if best >= CLOCK_SHARE * highest:
        return None
    return FitnessProblem("no", f"{rate_text(best, 'Hz')} of {rate_text(highest, 'Hz')} at most under load",
                          "something that the driver does not name holds the clock down",
                          "look at 'nvidia-smi -q -d CLOCK,PERFORMANCE'; restart the machine if it stays")  # fmt: skip


def clock_unsteady(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge a clock that changes from launch to launch."""
    clocks = facts.clocks
    if not clocks:
        return None
    steady = sum(clock >= STEADY_CLOCK * max(clocks) for clock in clocks) / len(clocks)
    if steady >= STEADY_SHARE:
        return None
    found = (
        f"{share_text(1 - steady)} of the launches ran more than {share_text(1 - STEADY_CLOCK)} below the best clock"
    )
    return FitnessProblem("care", found, f"the clock wanders, {rate_text(median(clocks), 'Hz')} in the median",
                          "lock it: 'nvidia-smi --lock-gpu-clocks=MHZ' as root, at one that holds under load"
                          )  # fmt: skip


def hot(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge the temperature, at rest and during the probe."""
    heat = max((one for one in (facts.value("temperature"), _probed_heat(facts)) if one is not None), default=None)
    limit = facts.value("slowdown_temperature") or HOT + MARGIN
    if heat is None or heat < limit - MARGIN:
        return None
    near = heat >= limit - LAST_MARGIN
    return FitnessProblem("no" if near else "care", f"{heat:.0f} C, heat slows it down at {limit:.0f} C",
                          "near the point where heat holds the clock down",
                          "let it cool, look at fans and at neighbours in the same chassis")  # fmt: skip


def memory_errors(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge memory errors that were not corrected, and rows that could not be replaced."""
    errors, failed = facts.value("ecc_uncorrected"), facts.value("remap_failed")
    if not errors and not failed:
        return None
    found = f"{errors or 0:.0f} uncorrected" + (", a row could not be replaced" if failed else "")
    return FitnessProblem("no", found, "the memory is faulty",
                          "reset the GPU; if they come again, have it replaced")  # fmt: skip


def neighbours(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge other processes: one that works makes times wrong, one that only holds memory may begin to."""
    found = [one for one in facts.reading.processes or () if not one.ours]
    working = [one for one in found if one.busy] or (facts.evidence is not None and facts.evidence.busy_neighbours)
    words = [f"{one} {bytes_text(one.memory)}" for one in found]
    later = facts.evidence.neighbours if facts.evidence else ()
    words += [one for one in later if not any(word.startswith(one) for word in words)]
    if not words and not working:
        return None
    cure = "end them, or choose another GPU with CUDA_VISIBLE_DEVICES"
    if working:
        return FitnessProblem("no", ", ".join(words), "another process works on this GPU", cure)
    return FitnessProblem("care", ", ".join(words), "another process holds memory and may begin to work", cure)


def busy(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge a device that works although nobody is seen on it: a neighbour in another container."""
    share = facts.value("utilization")
    if share is None or share <= BUSY_AT_REST or any(not one.ours for one in facts.reading.processes or ()):
        return None
    return FitnessProblem("no", f"busy {share_text(share)} of the time before anything was launched",
                          "somebody works on it who is not visible here, as in another container",
                          "find out who shares the GPU, or choose another one")  # fmt: skip


def unseen_neighbours(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge whether neighbours could be seen."""
    if facts.reading.processes is not None or facts.reading.lost or facts.value("clock_reasons") is None:
        return None
    reason = facts.reading.missing.get("processes", "not read")
    return FitnessProblem("care", f"unknown: {reason}", "other processes on the GPU cannot be seen",
                          "make sure that nothing else runs there")  # fmt: skip


def little_memory(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge how much of the memory is free."""
    free, total = facts.value("memory_free"), facts.value("memory_total")
    if free is None or not total or free >= total / 2:
        return None
    return FitnessProblem("care", f"{bytes_text(free)} of {bytes_text(total)} free", "others hold most of the memory",
                          "large workloads are skipped for want of memory; free it")  # fmt: skip


def persistence(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge persistence mode."""
    if facts.value("persistence") != 0:
        return None
    return FitnessProblem("care", "persistence mode is off", "the driver unloads between processes, first calls wait",
                          "'nvidia-smi --persistence-mode=1' as root, or nvidia-persistenced")  # fmt: skip


def mig(facts: FitnessFacts) -> FitnessProblem | None:
    """Judge MIG: slices share clocks and power; a whole GPU that is to be cut does not run kernels."""
    if facts.reading.is_slice:
        return FitnessProblem("care", f"a slice: {facts.reading.name}", "clocks, power and heat are the whole GPU's",
                              "compare slices only with equal slices, while the others rest")  # fmt: skip
    if not facts.value("mig"):
        return None
    return FitnessProblem("no", "MIG is on and this is no slice", "CUDA runs kernels on slices alone then",
                          "choose a slice with CUDA_VISIBLE_DEVICES=MIG-..., or 'nvidia-smi --multi-instance-gpu=0'"
                          )  # fmt: skip


RULES = (
    lost, unread, mig, events, held_down, throttled, memory_errors, neighbours, busy, clock_too_low, hot,
    clock_set_lower, clock_unsteady, power_limit, power_capped, unseen_neighbours, little_memory, persistence,
)  # fmt: skip


def _is_set(facts: FitnessFacts) -> bool:
    """Return whether an administrator set the clock, at rest or as the probe saw it."""
    working = facts.evidence.reasons if facts.evidence else {}
    return "application clocks" in reasons_in(facts.value("clock_reasons")) or "application clocks" in working


def _best_clock(facts: FitnessFacts) -> float | None:
    """Return the best clock under load in hertz; without a probe the one at rest."""
    return max(facts.clocks, default=None) or facts.value("sm_clock")


def _probed_heat(facts: FitnessFacts) -> float | None:
    return facts.evidence.highest("temperature") if facts.evidence else None
