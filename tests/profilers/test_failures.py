"""Every class of failure is recognised, explained and ends with a stable code."""

import pytest

from prism_bench.profilers.tools import EMPTY, FAILURES, OTHER, ProfilerFailed, classify, last_words

SAID = {
    "permission": "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
                  "Performance Counters on the target device\n==WARNING== No kernels were profiled.",
    "library_not_loaded": "==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible ...",
    "driver_mismatch": "==ERROR== Cuda driver is not compatible with Nsight Compute",
    "counters_busy": "Profiling failed because a driver resource was unavailable. Ensure that no other tool (like "
                     "DCGM) is concurrently collecting profiling data.",
    "device_not_supported": "========= Error: Device not supported. Please refer to the \"Supported Devices\" section",
    "unknown_metric": "==ERROR== Failed to find metric sm__occupancy.avg.pct",
    "kernel_not_prepared": "==ERROR== Failed to prepare kernel for profiling",
    "application_failed": "==ERROR== The application returned an error code (1).\n"
                          "==WARNING== No kernels were profiled.",
    "no_kernels": "==WARNING== No kernels were profiled.",
    "qdstrm": "FATAL ERROR: /dvs/...: Throw in function ConvertGpuTicksToSyncNs",
}  # fmt: skip


@pytest.mark.parametrize("name", [failure.name for failure in FAILURES])
def test_each_class_is_recognised_by_its_words(name):
    assert name == classify(SAID[name], 1, produced=False).name


@pytest.mark.parametrize("failure", [*FAILURES, EMPTY, OTHER], ids=lambda failure: failure.name)
def test_each_class_says_one_cause_and_one_cure(failure):
    assert failure.cause.endswith(".") and failure.cause.count(". ") == 0
    assert failure.cure.rstrip().endswith(".")
    assert failure.exit_code in (2, 3)


def test_a_result_makes_words_warnings():
    assert classify(SAID["no_kernels"], 0, produced=True) is None


def test_a_good_end_without_a_result_is_an_error_that_cannot_be_trusted():
    failure = classify("==PROF== Disconnected from process 7", 0, produced=False)
    assert (EMPTY, 3) == (failure, failure.exit_code)


def test_what_is_not_known_is_said_to_be_unknown():
    assert OTHER == classify("Segmentation fault", 139, produced=False)


def test_the_error_says_tool_cause_cure_and_the_tools_own_words():
    failure = classify(SAID["permission"], 1, produced=False)
    error = ProfilerFailed("ncu", failure, last_words(SAID["permission"]))
    assert str(error).startswith("ncu: the driver gives performance counters to administrators only. Run as root")
    assert "It printed: ==ERROR== ERR_NVGPUCTRPERM" in str(error)
    assert 2 == error.exit_code


def test_messages_of_public_threads(samples):
    classes = {"PERMISSION": "permission", "LIBRARY_NOT_LOADED": "library_not_loaded", "RESOURCE_BUSY": "counters_busy",
               "DRIVER_MISMATCH": "driver_mismatch", "NO_KERNELS": "no_kernels", "APP_FAILED": "application_failed",
               "METRIC_UNKNOWN": "unknown_metric", "KERNEL_PREPARE": "kernel_not_prepared", "NSYS_CONVERSION": "qdstrm",
               "NO_KERNELS_CHILD": "no_kernels"}  # fmt: skip
    lines = (samples / "ncu_error_messages.txt").read_text().splitlines()
    told = [line.split(" | ", 1) for line in lines if not line.startswith("#")]
    assert 10 <= len(told)
    for word, message in told:
        assert classes[word] == classify(message, 1, produced=False).name
