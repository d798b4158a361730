// Shared memory under the address sanitizer, which guards it: written by our own loops, because the sanitizer's
// memset would refuse to touch the red zones between the variables.
#pragma once

#include "unwritten.h"

extern "C" void __asan_poison_memory_region(const volatile void* begin, size_t bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void* begin, size_t bytes);

namespace cuda_cpu {

inline void fill_shared(char* begin, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
        begin[i] = unwritten_byte(begin + i);
        asm volatile("" ::: "memory");
    }
}

inline void copy_shared(char* to, const char* from, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
        to[i] = from[i];
        asm volatile("" ::: "memory");
    }
}

inline void guard_shared(size_t used) {
    __asan_unpoison_memory_region(dynamic_shared, sizeof dynamic_shared);
    __asan_poison_memory_region(dynamic_shared + used, sizeof dynamic_shared - used);
}

// The sanitizer has told it already.
inline long shared_overrun(size_t) { return -1; }

// Threads that were given up leave their frames' red zones on their stacks.
inline void clean_stacks(char* begin, size_t bytes) { __asan_unpoison_memory_region(begin, bytes); }

}  // namespace cuda_cpu
