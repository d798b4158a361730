// The modes that do not watch accesses.
#pragma once

#include "observer.h"

namespace cuda_cpu {

void observe_launch(const Request&, size_t) {}
void observe_block_start(Block&) {}
void observe_block_end(Block&) {}
void observe_shared_swap(Block*, Block*) {}
void observe_block_barrier(Block&) {}
void observe_named_barrier(const Thread&, unsigned, bool) {}
void observe_grid_barrier() {}
void observe_warp_barrier(Block&, unsigned, unsigned) {}
void observe_warp_step(Block&, unsigned) {}
void observe_atomic(const volatile void*, size_t, const void*) {}
void observe_access(const volatile void*, size_t, bool, const void*) {}
void observe_copy_start(char*, size_t, const void*) {}
void observe_launch_end() {}
void fence() {}
void atomic_access(const volatile void*, size_t) {}

}  // namespace cuda_cpu
