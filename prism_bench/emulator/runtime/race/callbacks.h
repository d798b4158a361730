// What -fsanitize=thread makes the compiler call before each load and store of a kernel.
#pragma once

#include "observer.h"

#define CUDA_CPU_CALLBACK extern "C" __attribute__((visibility("hidden"), noinline))

namespace cuda_cpu {

// A volatile access is what flags are made of: it does not race with another one, and can be waited on.
static void volatile_access(void* address, size_t bytes, bool is_write, const void* code) {
    if (scheduler.stacks.holds(address) || !scheduler.current) return;
    {
        Uninterruptible section;
        watch_access(address, bytes, is_write, code_of(code) | atomic_flag);
        pass_flag(*scheduler.current, address, is_write, !is_write);
        scheduler.current->spun_at = code_of(code);
    }
    polled(address, is_write, Site{nullptr, 0, 0});
}

}  // namespace cuda_cpu

#define CUDA_CPU_SIZE(n)                                                                                                                                 \
    CUDA_CPU_CALLBACK void __tsan_read##n(void* a) { cuda_cpu::observe_plain<n, false>(a, __builtin_return_address(0)); }                               \
    CUDA_CPU_CALLBACK void __tsan_write##n(void* a) { cuda_cpu::observe_plain<n, true>(a, __builtin_return_address(0)); }                               \
    CUDA_CPU_CALLBACK void __tsan_unaligned_read##n(void* a) { cuda_cpu::observe_plain<n, false>(a, __builtin_return_address(0)); }                     \
    CUDA_CPU_CALLBACK void __tsan_unaligned_write##n(void* a) { cuda_cpu::observe_plain<n, true>(a, __builtin_return_address(0)); }                     \
    CUDA_CPU_CALLBACK void __tsan_volatile_read##n(void* a) { cuda_cpu::volatile_access(a, n, false, __builtin_return_address(0)); }                     \
    CUDA_CPU_CALLBACK void __tsan_volatile_write##n(void* a) { cuda_cpu::volatile_access(a, n, true, __builtin_return_address(0)); }                     \
    CUDA_CPU_CALLBACK void __tsan_unaligned_volatile_read##n(void* a) { cuda_cpu::volatile_access(a, n, false, __builtin_return_address(0)); }           \
    CUDA_CPU_CALLBACK void __tsan_unaligned_volatile_write##n(void* a) { cuda_cpu::volatile_access(a, n, true, __builtin_return_address(0)); }           \
    CUDA_CPU_CALLBACK void __tsan_read_write##n(void* a) {                                                                                               \
        cuda_cpu::observe_access(a, n, false, __builtin_return_address(0));                                                                              \
        cuda_cpu::observe_access(a, n, true, __builtin_return_address(0));                                                                               \
    }
CUDA_CPU_SIZE(1)
CUDA_CPU_SIZE(2)
CUDA_CPU_SIZE(4)
CUDA_CPU_SIZE(8)
CUDA_CPU_SIZE(16)
#undef CUDA_CPU_SIZE

CUDA_CPU_CALLBACK void __tsan_read_range(void* a, unsigned long bytes) { cuda_cpu::observe_access(a, bytes, false, __builtin_return_address(0)); }
CUDA_CPU_CALLBACK void __tsan_write_range(void* a, unsigned long bytes) { cuda_cpu::observe_access(a, bytes, true, __builtin_return_address(0)); }
CUDA_CPU_CALLBACK void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
    cuda_cpu::observe_access(from, bytes, false, __builtin_return_address(0));
    cuda_cpu::observe_access(to, bytes, true, __builtin_return_address(0));
    return memcpy(to, from, bytes);
}
CUDA_CPU_CALLBACK void* __tsan_memset(void* to, int value, unsigned long bytes) {
    cuda_cpu::observe_access(to, bytes, true, __builtin_return_address(0));
    return memset(to, value, bytes);
}
CUDA_CPU_CALLBACK void __tsan_vptr_update(void**, void*) {}
CUDA_CPU_CALLBACK void __tsan_vptr_read(void**) {}
CUDA_CPU_CALLBACK void __tsan_func_entry(void*) {}
CUDA_CPU_CALLBACK void __tsan_func_exit() {}
CUDA_CPU_CALLBACK void __tsan_init() {}

struct cuda_cpu_argument_traffic {
    int argument;
    int reserved;
    unsigned long long bytes_read, bytes_written, unique_read, unique_written;
};

CUDA_CPU_EXPORT const cuda_cpu::Totals* cuda_cpu_totals() { return &cuda_cpu::totals; }

// Fills in the n-th region's traffic; false where there is none.
CUDA_CPU_EXPORT int cuda_cpu_traffic(size_t which, cuda_cpu_argument_traffic* result) {
    using namespace cuda_cpu;
    if (which >= regions.globals.size()) return 0;
    const Watch& watch = regions.globals[which];
    *result = {watch.argument, 0, watch.bytes_read, watch.bytes_written, 0, 0};
    for (size_t i = 0; i < watch.cell_count(); ++i) {
        const size_t bytes = std::min(watch.grain, watch.bytes - i * watch.grain);
        if (watch.cells[i].read_segment[0]) result->unique_read += bytes;
        if (watch.cells[i].write_segment) result->unique_written += bytes;
    }
    return 1;
}
