#include <cuda_runtime.h>
#include <limits.h>

__device__ inline void compare_swap(int *a, int *b, bool up) {
  if ((*a > *b) == up) {
    int t = *a;
    *a = *b;
    *b = t;
  }
}

// One step of a bitonic sort over all of the array.
__global__ void bitonic_sort_step(int *dev_values, int j, int k) {
  unsigned int i = threadIdx.x + blockDim.x * blockIdx.x;
  unsigned int ixj = i ^ j;
  if (ixj > i) compare_swap(dev_values + i, dev_values + ixj, (i & k) == 0);
}

template <int SIZE>
__global__ void bitonic_sort_shared(const int *keys_in, int *keys_out, int length) {
  __shared__ int s_key[SIZE];
  int t = threadIdx.x, base = blockIdx.x * SIZE;
  s_key[t] = base + t < length ? keys_in[base + t] : INT_MAX;
  for (int k = 2; k <= SIZE; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int other = t ^ j;
      if (other > t) compare_swap(&s_key[t], &s_key[other], (t & k) == 0);
    }
  __syncthreads();
  if (base + t < length) keys_out[base + t] = s_key[t];
}

__global__ void rank_sort(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float mine = in[i];
  int rank = 0;
  for (int j = 0; j < n; j++) rank += in[j] < mine || (in[j] == mine && j < i);
  out[rank] = mine;
}

__global__ void radix_count(const unsigned *keys, unsigned *counts, int n, int shift) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[(keys[i] >> shift) & 15u], 1u);
}

void sort_all(int *values, int *sorted, float *in, float *out, unsigned *keys, unsigned *counts, int n) {
  const int threads = 512;
  dim3 blocks(n / threads, 1);
  for (int k = 2; k <= n; k <<= 1)
    for (int j = k >> 1; j > 0; j = j >> 1) bitonic_sort_step<<<blocks, threads>>>(values, j, k);
  bitonic_sort_shared<256><<<(n + 255) / 256, 256>>>(values, sorted, n);
  rank_sort<<<(n + 127) / 128, 128>>>(in, out, n);
  for (int shift = 0; shift < 32; shift += 4) radix_count<<<64, 256>>>(keys, counts, n, shift);
}
