#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include "launches/work_queue.cuh"

// Kernels that a queue serves. What is included after this header sees no launch of its own: its kernels are device
// functions, called once for each block of a grid that `virtual_place` says. Three rules for them: their blocks are as
// large as the launch's, no thread leaves before a barrier that others of its block still meet, and they read with plain
// loads, since what they read may have changed after the launch began. A tensor map is a parameter of a launch
// (`__grid_constant__`): a plan that has one is refused, the same kernel with pointers is served.

#undef __global__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__ __device__
#define __launch_bounds__(...)
#define __grid_constant__
#define __ldg(address) (*(address))
#define blockIdx virtual_place().block
#define gridDim virtual_place().grid
