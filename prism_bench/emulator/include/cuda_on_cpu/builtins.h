// Where a thread stands: set by the scheduler each time it lets a thread run (there is one OS thread only).
#pragma once

#include "interface.h"
#include "vector_types.h"

extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
constexpr int warpSize = 32;

#define __syncthreads() ::cuda_cpu::block_barrier(CUDA_CPU_SITE)
#define __syncthreads_count(predicate) ::cuda_cpu::block_barrier_reduce(0, (predicate) ? 1 : 0, CUDA_CPU_SITE)
#define __syncthreads_and(predicate) ::cuda_cpu::block_barrier_reduce(1, (predicate) ? 1 : 0, CUDA_CPU_SITE)
#define __syncthreads_or(predicate) ::cuda_cpu::block_barrier_reduce(2, (predicate) ? 1 : 0, CUDA_CPU_SITE)

// Without a count every thread of the block takes part, as in __syncthreads.
#define __barrier_sync(id) (static_cast<void>(id), ::cuda_cpu::block_barrier(CUDA_CPU_SITE))
#define __barrier_sync_count(id, threads) ::cuda_cpu::named_barrier(id, threads, true, CUDA_CPU_SITE)

inline void __threadfence() { cuda_cpu::fence(); }
inline void __threadfence_block() { cuda_cpu::fence(); }
inline void __threadfence_system() { cuda_cpu::fence(); }

inline void __nanosleep(unsigned int, cuda_cpu::Site site = CUDA_CPU_CALLER) { cuda_cpu::yield("__nanosleep", site); }

inline size_t __cvta_generic_to_shared(const void* pointer) { return cuda_cpu::shared_address(pointer); }
inline void* __cvta_shared_to_generic(size_t address) { return cuda_cpu::shared_pointer(address); }

inline long long clock64() { return cuda_cpu::nanoseconds(); }
inline unsigned long long __globaltimer() { return static_cast<unsigned long long>(cuda_cpu::nanoseconds()); }

[[noreturn]] inline void __trap(cuda_cpu::Site site = CUDA_CPU_CALLER) { cuda_cpu::stop_launch("trap", "__trap was called", site); }
inline void __brkpt() {}
inline void __prof_trigger(int) {}
