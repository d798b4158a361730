// Asynchronous copies from global to shared memory: queued until the wait that asks for them.
#pragma once

#include "cuda_on_cpu/builtins.h"

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_filled = 0, cuda_cpu::Site site = CUDA_CPU_CALLER) {
    if (bytes != 4 && bytes != 8 && bytes != 16)
        cuda_cpu::stop_launch("misaligned", "__pipeline_memcpy_async copies 4, 8 or 16 bytes", site);
    cuda_cpu::require_aligned("__pipeline_memcpy_async: what it writes to", to, bytes, site);
    cuda_cpu::require_aligned("__pipeline_memcpy_async: what it reads", from, bytes, site);
    cuda_cpu::copy_async(to, from, bytes, zero_filled);
}
inline void __pipeline_commit() { cuda_cpu::commit_copies(); }
inline void __pipeline_wait_prior(size_t allowed_pending) { cuda_cpu::wait_for_copies(allowed_pending); }
