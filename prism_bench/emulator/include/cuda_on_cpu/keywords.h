// CUDA's keywords, as far as a C++ compiler needs to know them.
#pragma once

#define CPU_CUDA 1
#define __CUDA_ARCH__ 900
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000

// g++'s thread sanitizer does not see a struct that is read where it is passed on by value; once all calls are gone, no
// struct is passed on.
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define __global__ __attribute__((flatten))
#else
#define __global__
#endif
#define __device__
#define __host__
#define __managed__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// always_inline breaks calls through a function pointer, and inlining is the optimiser's to decide.
#define __forceinline__
#define __noinline__
#define __inline_hint__
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))

// One copy serves every block in turn; the linker gathers them all (runtime/places.ld).
#define __shared__ static
