// Atomics: with one OS thread that is never switched away in the middle of one, plain code is atomic.
#pragma once

#include "builtins.h"
#include "integer.h"

namespace cuda_cpu {

template <typename T, typename Change>
CUDA_CPU_UNCHECKED T atomic_change(T* address, Change change, Site site) {
    require_aligned("atomic", address, sizeof(T), site);
    atomic_access(address, sizeof(T));
    T before, after;
    {
        Uninterruptible section;
        before = *address;
        after = change(before);
        *address = after;
    }
    polled(address, __builtin_memcmp(&before, &after, sizeof before) != 0, site);
    return before;
}

}  // namespace cuda_cpu

#define CUDA_CPU_ATOMIC(name, T, expression)                                                                        \
    inline T name(T* address, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) {                                     \
        return cuda_cpu::atomic_change(address, [value](T old) -> T { return expression; }, site);                  \
    }                                                                                                               \
    inline T name##_block(T* address, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) { return name(address, value, site); }   \
    inline T name##_system(T* address, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) { return name(address, value, site); }
#define CUDA_CPU_ATOMIC_INTEGERS(name, expression)             \
    CUDA_CPU_ATOMIC(name, int, expression)                     \
    CUDA_CPU_ATOMIC(name, unsigned int, expression)            \
    CUDA_CPU_ATOMIC(name, long long, expression)               \
    CUDA_CPU_ATOMIC(name, unsigned long long, expression)

CUDA_CPU_ATOMIC(atomicAdd, int, old + value)
CUDA_CPU_ATOMIC(atomicAdd, unsigned int, old + value)
CUDA_CPU_ATOMIC(atomicAdd, unsigned long long, old + value)
CUDA_CPU_ATOMIC(atomicAdd, float, old + value)
CUDA_CPU_ATOMIC(atomicAdd, double, old + value)
CUDA_CPU_ATOMIC(atomicSub, int, old - value)
CUDA_CPU_ATOMIC(atomicSub, unsigned int, old - value)
CUDA_CPU_ATOMIC_INTEGERS(atomicMin, (value < old ? value : old))
CUDA_CPU_ATOMIC_INTEGERS(atomicMax, (value > old ? value : old))
CUDA_CPU_ATOMIC_INTEGERS(atomicAnd, old & value)
CUDA_CPU_ATOMIC_INTEGERS(atomicOr, old | value)
CUDA_CPU_ATOMIC_INTEGERS(atomicXor, old ^ value)
CUDA_CPU_ATOMIC(atomicExch, int, (static_cast<void>(old), value))
CUDA_CPU_ATOMIC(atomicExch, unsigned int, (static_cast<void>(old), value))
CUDA_CPU_ATOMIC(atomicExch, unsigned long long, (static_cast<void>(old), value))
CUDA_CPU_ATOMIC(atomicExch, float, (static_cast<void>(old), value))
CUDA_CPU_ATOMIC(atomicInc, unsigned int, (old >= value ? 0u : old + 1))
CUDA_CPU_ATOMIC(atomicDec, unsigned int, (old == 0 || old > value ? value : old - 1))
#undef CUDA_CPU_ATOMIC_INTEGERS
#undef CUDA_CPU_ATOMIC

#define CUDA_CPU_SWAP(T)                                                                                             \
    inline T atomicCAS(T* address, T expected, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) {                     \
        return cuda_cpu::atomic_change(address, [=](T old) -> T { return old == expected ? value : old; }, site);    \
    }                                                                                                                \
    inline T atomicCAS_block(T* a, T expected, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) { return atomicCAS(a, expected, value, site); } \
    inline T atomicCAS_system(T* a, T expected, T value, cuda_cpu::Site site = CUDA_CPU_CALLER) { return atomicCAS(a, expected, value, site); }
CUDA_CPU_SWAP(int)
CUDA_CPU_SWAP(unsigned int)
CUDA_CPU_SWAP(unsigned short)
CUDA_CPU_SWAP(unsigned long long)
#undef CUDA_CPU_SWAP
