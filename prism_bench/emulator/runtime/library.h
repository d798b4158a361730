// The runtime's storage, and the functions that the Python side calls.
#pragma once

#include <stdlib.h>

#include "alignment.h"
#include "grid.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_cpu {

volatile int uninterruptible = 1;
alignas(4096) char dynamic_shared[dynamic_shared_limit + 4096];
Scheduler scheduler;
std::vector<Finding> findings;
Entry shown_entry;  // until the next one is asked for

// Made at the end of each kernel's source.
Entry entry_of(size_t number);
extern const size_t entry_count;
extern const Symbol* const symbols;
extern const size_t symbol_count;

long long nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void leave_early() { scheduler.current->returned = true; }

[[noreturn]] static void abandon() {
    scheduler.stopped = true;
    void* unused;
    switch_from(&unused, nullptr);
    __builtin_unreachable();
}

[[noreturn]] void stop_misaligned(const char* access, const volatile void* address, size_t alignment, Site site) {
    uninterruptible = 1;
    report_misaligned(access, address, alignment, access_of(scheduler.current, site));
    abandon();
}

[[noreturn]] void stop_launch(const char* kind, const char* message, Site site) {
    uninterruptible = 1;
    add_access(add_finding(kind, "%s", message), access_of(scheduler.current, site));
    abandon();
}

void check_launch_bounds(Site site, unsigned most_threads, ...) {
    const dim3 size = blockDim;
    const unsigned threads = size.x * size.y * size.z;
    if (threads <= most_threads) return;
    char text[320];
    snprintf(text, sizeof text, "block (%u, %u, %u) has %u threads; the __launch_bounds__ of %.200s allow %u", size.x, size.y, size.z, threads,
             scheduler.entry.name, most_threads);
    stop_launch("launch bounds", text, site);
}

void check_cluster_dims(Site site, unsigned x, unsigned y, unsigned z) {
    const dim3 size = gridDim;
    char text[200] = "";
    if (x * y * z > 8)
        snprintf(text, sizeof text, "a cluster (%u, %u, %u) has %u blocks; a device takes at most 8 without the attribute for larger ones", x, y, z,
                 x * y * z);
    else if (size.x % x || size.y % y || size.z % z)
        snprintf(text, sizeof text, "grid (%u, %u, %u) is no multiple of its clusters (%u, %u, %u)", size.x, size.y, size.z, x, y, z);
    if (*text) stop_launch("cluster", text, site);
}

[[noreturn]] void end_without_progress(bool in_a_loop) {
    uninterruptible = 1;
    Thread* self = scheduler.current;
    if (in_a_loop) {
        self->state = State::Spinning;
        self->waiting_for = "a loop";
        self->site = Site{nullptr, 0, 0};
    }
    char opening[96];
    const bool idle = !out_of_time();
    snprintf(opening, sizeof opening, "%s %.3g s of CPU time", idle ? "no progress for" : "not ended after",
             scheduler.request.patience_seconds * (idle ? 1 : most_patiences));
    report_waiting("no progress", opening, grid.live);
    if (in_a_loop && !findings.empty()) {
        findings.back().accesses = 1;
        findings.back().access[0] = access_of(self, self->site);
    }
    abandon();
}

static void begin(const Request& request) {
    scheduler.request = request;
    scheduler.entry = entry_of(static_cast<size_t>(request.entry));
    scheduler.random = request.seed * 0x9E3779B97F4A7C15ull | 1;
    scheduler.stopped = false;
    findings.clear();
    blockDim = dim3(request.block[0], request.block[1], request.block[2]);
    gridDim = dim3(request.grid[0], request.grid[1], request.grid[2]);
    grid.count = uint64_t(request.grid[0]) * request.grid[1] * request.grid[2];
    grid.started = 0;
    grid.numbers.clear();
    if (request.order != 2) return;
    for (uint64_t i = 0; i < grid.count; ++i) grid.numbers.push_back(i);
    shuffle_order(grid.numbers.data(), grid.numbers.size());
}

static void check_shared_overrun(size_t used) {
    const long place = shared_overrun(used);
    if (place >= 0)
        add_finding("out of bounds", "write to byte %ld of dynamic shared memory, which has %zu bytes", place, used);
}

}  // namespace cuda_cpu

#define CUDA_CPU_EXPORT extern "C" __attribute__((visibility("default")))

CUDA_CPU_EXPORT int cuda_cpu_launch(const cuda_cpu::Request* request) {
    using namespace cuda_cpu;
    begin(*request);
    guard_shared(request->shared_bytes);
    observe_launch(*request, static_shared_bytes());
    start_watchdog();
    run_grid();
    stop_watchdog();
    drop_live_blocks();
    check_shared_overrun(request->shared_bytes);
    guard_shared(sizeof dynamic_shared);
    observe_launch_end();
    fflush(stdout);
    return static_cast<int>(findings.size());
}

CUDA_CPU_EXPORT const cuda_cpu::Finding* cuda_cpu_finding(int which) { return &cuda_cpu::findings[static_cast<size_t>(which)]; }
CUDA_CPU_EXPORT size_t cuda_cpu_entry_count() { return cuda_cpu::entry_count; }
CUDA_CPU_EXPORT const cuda_cpu::Entry* cuda_cpu_entry(size_t which) { return &(cuda_cpu::shown_entry = cuda_cpu::entry_of(which)); }
CUDA_CPU_EXPORT size_t cuda_cpu_symbol_count() { return cuda_cpu::symbol_count; }
CUDA_CPU_EXPORT const cuda_cpu::Symbol* cuda_cpu_symbol(size_t which) { return &cuda_cpu::symbols[which]; }
CUDA_CPU_EXPORT size_t cuda_cpu_static_shared() { return cuda_cpu::static_shared_bytes(); }
