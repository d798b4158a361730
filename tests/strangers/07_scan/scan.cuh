#ifndef SCAN_CUH
#define SCAN_CUH
#include <cuda_runtime.h>

namespace scan {

template <typename T>
__device__ inline T warp_inclusive(T value) {
  const int lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d <<= 1) {
    T other = __shfl_up_sync(0xffffffffu, value, d);
    if (lane >= d) value += other;
  }
  return value;
}

// Inclusive scan of each block; the totals of the blocks go to `totals`.
template <typename T, int THREADS>
__global__ void scan_blocks(const T* input, T* output, T* totals, int n) {
  __shared__ T sums[THREADS / 32];
  const int i = blockIdx.x * THREADS + threadIdx.x;
  T value = warp_inclusive(i < n ? input[i] : T(0));
  if ((threadIdx.x & 31) == 31) sums[threadIdx.x / 32] = value;
  __syncthreads();
  T before = 0;
  for (int w = 0; w < threadIdx.x / 32; w++) before += sums[w];
  if (i < n) output[i] = value + before;
  if (threadIdx.x == THREADS - 1) totals[blockIdx.x] = value + before;
}

template <typename T>
__global__ void add_offsets(T* data, const T* offsets, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && blockIdx.x > 0) data[i] += offsets[blockIdx.x - 1];
}

__global__ void exclusive_hillis(const int* in, int* out, int n) {
  extern __shared__ int temp[];
  const int t = threadIdx.x;
  int from = 1, to = 0;
  temp[t] = t > 0 && t < n ? in[t - 1] : 0;
  __syncthreads();
  for (int d = 1; d < n; d *= 2) {
    to = 1 - to;
    from = 1 - to;
    temp[to * n + t] = temp[from * n + t] + (t >= d ? temp[from * n + t - d] : 0);
    __syncthreads();
  }
  out[t] = temp[to * n + t];
}

__global__ void mark_positive(const float* values, int* flags, int n) {
  const int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) flags[i] = values[i] > 0.0f ? 1 : 0;
}

}  // namespace scan
#endif
