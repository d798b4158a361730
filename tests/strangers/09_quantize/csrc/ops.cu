#include "kernels.cuh"
#include <stdio.h>

#define CUDA_CHECK_RETURN(value)                                        \
  {                                                                     \
    cudaError_t _m_cudaStat = value;                                    \
    if (_m_cudaStat != cudaSuccess) fprintf(stderr, "error %s\n", cudaGetErrorString(_m_cudaStat)); \
  }
#define NUM_BLOCK 512

void absmaxRows(float* A, float* absmax, int rows, int cols) {
  kAbsMaxRows<256><<<rows, 256>>>(A, absmax, rows, cols);
  CUDA_CHECK_RETURN(cudaPeekAtLastError());
}

void quantizeRows(float* A, float* absmax, int8_t* out, int rows, int cols, cudaStream_t stream) {
  const int threads = 256;
  dim3 grid((cols + threads - 1) / threads, rows);
  kQuantizeRows<<<grid, threads, 0, stream>>>(A, absmax, out, rows, cols);
}

void dequantize(int8_t* A, float* absmax, half* out, int rows, int cols, cudaStream_t stream) {
  int num_blocks = rows * cols / NUM_BLOCK;
  num_blocks = (rows * cols) % NUM_BLOCK == 0 ? num_blocks : num_blocks + 1;
  kDequantize<<<num_blocks, NUM_BLOCK, 0, stream>>>(A, absmax, out, rows, cols);
  CUDA_CHECK_RETURN(cudaPeekAtLastError());
}

void pack(uint8_t* values, uint8_t* packed, float* code, float* out, int n) {
  kPack4bit<<<(n / 2 + 127) / 128, 128>>>(values, packed, n);
  kUnpack4bit<<<64, 256>>>(packed, code, out, n);
}
