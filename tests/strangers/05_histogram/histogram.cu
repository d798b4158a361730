#include <cuda_runtime.h>
#include <cstdint>
#include <cstdlib>

constexpr int NUM_BINS = 256;
using bin_t = unsigned int;
typedef unsigned char uchar_t;

__global__ void histogram_global(const uchar_t* data, bin_t* bins, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);
}

__global__ void histogram_shared(const uchar_t* __restrict__ data, bin_t* __restrict__ bins, int n) {
  __shared__ bin_t local[NUM_BINS];
  for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}

// A partial histogram of each block, then one kernel merges them.
__global__ void histogram_partial(const uchar_t* data, bin_t* partial, int n) {
  __shared__ bin_t s[NUM_BINS];
  s[threadIdx.x] = 0;
  __syncthreads();
  int per_block = (n + gridDim.x - 1) / gridDim.x;
  int end = min(n, (int)(blockIdx.x + 1) * per_block);
  for (int i = blockIdx.x * per_block + threadIdx.x; i < end; i += blockDim.x) atomicAdd(&s[data[i]], 1u);
  __syncthreads();
  partial[blockIdx.x * NUM_BINS + threadIdx.x] = s[threadIdx.x];
}

__global__ void histogram_merge(const bin_t* partial, bin_t* bins, int num_partials) {
  bin_t sum = 0;
  for (int p = 0; p < num_partials; p++) sum += partial[p * NUM_BINS + threadIdx.x];
  bins[threadIdx.x] = sum;
}

__global__ void equalize(const uchar_t* in, uchar_t* out, const uchar_t* table, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  out[y * width + x] = table[in[y * width + x]];
}

extern "C" void run(const uchar_t* data, bin_t* bins, bin_t* partial, uchar_t* out, uchar_t* table, int width, int height) {
  const int n = width * height;
  const int block = 256;
  cudaMemset(bins, 0, NUM_BINS * sizeof(bin_t));
  histogram_global<<<(n + block - 1) / block, block>>>(data, bins, n);
  cudaMemset(bins, 0, NUM_BINS * sizeof(bin_t));
  histogram_shared<<<32, 128>>>(data, bins, n);
  constexpr int PARTIALS = 16;
  histogram_partial<<<PARTIALS, NUM_BINS>>>(data, partial, n);
  histogram_merge<<<1, NUM_BINS>>>(partial, bins, PARTIALS);
  dim3 threads(16, 16), grid;
  grid.x = (width + threads.x - 1) / threads.x;
  grid.y = (height + threads.y - 1) / threads.y;
  equalize<<<grid, threads>>>(data, out, table, width, height);
}
