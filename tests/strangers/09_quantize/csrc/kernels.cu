#include "kernels.cuh"

template <int THREADS>
__global__ void kAbsMaxRows(const float* __restrict__ A, float* __restrict__ absmax, int rows, int cols) {
  __shared__ float smem[THREADS];
  const float* row = A + (int64_t)blockIdx.x * cols;
  float local = 0.f;
  for (int i = threadIdx.x; i < cols; i += THREADS) local = fmaxf(local, fabsf(row[i]));
  smem[threadIdx.x] = local;
  __syncthreads();
#pragma unroll
  for (int s = THREADS / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) smem[threadIdx.x] = fmaxf(smem[threadIdx.x], smem[threadIdx.x + s]);
    __syncthreads();
  }
  if (threadIdx.x == 0) absmax[blockIdx.x] = smem[0];
}

__global__ void kQuantizeRows(const float* A, const float* absmax, int8_t* out, int rows, int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (col >= cols || row >= rows) return;
  const float scale = 127.0f / absmax[row];
  out[row * cols + col] = (int8_t)rintf(A[row * cols + col] * scale);
}

__global__ void kDequantize(const int8_t* __restrict__ A, const float* __restrict__ absmax, half* __restrict__ out, int rows, int cols) {
  const int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= rows * cols) return;
  out[idx] = __float2half((float)A[idx] * (absmax[idx / cols] / 127.0f));
}

__global__ void kPack4bit(const uint8_t* values, uint8_t* packed, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i < n) packed[i] = (values[2 * i] & 15) << 4 | (values[2 * i + 1] & 15);
}

__global__ void kUnpack4bit(const uint8_t* packed, const float* code, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    const uint8_t byte = packed[i / 2];
    out[i] = code[i % 2 ? byte & 15 : byte >> 4];
  }
}

template __global__ void kAbsMaxRows<256>(const float* __restrict__ A, float* __restrict__ absmax, int rows, int cols);
