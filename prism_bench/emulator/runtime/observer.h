// What the checks of the race mode need to hear from the scheduler. The other modes link empty versions.
#pragma once

#include "state.h"

namespace cuda_cpu {

void observe_launch(const Request& request, size_t static_shared_bytes);
void observe_block_start(Block& block);
void observe_block_end(Block& block);
void observe_shared_swap(Block* leaving, Block* entering);
void observe_block_barrier(Block& block);
void observe_named_barrier(const Thread& thread, unsigned id, bool arrives);
void observe_grid_barrier();
void observe_warp_barrier(Block& block, unsigned warp, unsigned lanes);
void observe_warp_step(Block& block, unsigned warp);
void observe_atomic(const volatile void* address, size_t bytes, const void* code);
void observe_access(const volatile void* address, size_t bytes, bool is_write, const void* code);
void observe_copy_start(char* to, size_t bytes, const void* code);
void observe_launch_end();

}  // namespace cuda_cpu
