#include <cuda_runtime.h>
#include <iostream>

using index_t = int;
template <typename T> using ptr = T *__restrict__;

__global__ void spmv_csr_scalar(const index_t rows, const index_t *row_ptr, const index_t *col_idx, const float *values,
                                const float *x, float *y) {
  index_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float dot = 0;
    for (index_t j = row_ptr[row]; j < row_ptr[row + 1]; j++) dot += values[j] * x[col_idx[j]];
    y[row] = dot;
  }
}

__global__ void spmv_csr_vector(const index_t rows, const index_t *row_ptr, const index_t *col_idx, const float *values,
                                const float *x, float *y) {
  const index_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x & 31;
  if (row >= rows) return;
  float dot = 0;
  for (index_t j = row_ptr[row] + lane; j < row_ptr[row + 1]; j += 32) dot += values[j] * x[col_idx[j]];
#pragma unroll
  for (int d = 16; d; d >>= 1) dot += __shfl_down_sync(~0u, dot, d);
  if (lane == 0) y[row] = dot;
}

__global__ void spmv_ell(int num_rows, int width, const int *indices, const float *data, const float *x, float *y) {
  int row = blockDim.x * blockIdx.x + threadIdx.x;
  if (row >= num_rows) return;
  float dot = 0.f;
  for (int n = 0; n < width; n++) dot += data[n * num_rows + row] * x[indices[n * num_rows + row]];
  y[row] = dot;
}

__global__ void coo_scatter_add(const int *rows, const float *values, float *out, const size_t nnz) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < nnz) atomicAdd(out + rows[i], values[i]);
}

void spmv(index_t rows, index_t *row_ptr, index_t *col_idx, float *values, float *x, float *y, int width, int *ell, size_t nnz) {
  const int block = 128;
  spmv_csr_scalar<<<(rows + block - 1) / block, block>>>(rows, row_ptr, col_idx, values, x, y);
  const int warps = block / 32;
  spmv_csr_vector<<<(rows + warps - 1) / warps, block>>>(rows, row_ptr, col_idx, values, x, y);
  spmv_ell<<<(rows + 255) / 256, 256>>>(rows, width, ell, values, x, y);
  coo_scatter_add<<<(nnz + 255) / 256, 256>>>(col_idx, values, y, nnz);
}
