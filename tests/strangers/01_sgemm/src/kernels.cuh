#pragma once
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

// Row-major C = alpha * A @ B + beta * C.
__global__ void sgemm_naive(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const uint x = blockIdx.x * blockDim.x + threadIdx.x;
  const uint y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < M && y < N) {
    float tmp = 0.0;
    for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
    C[x * N + y] = alpha * tmp + beta * C[x * N + y];
  }
}

template <const uint BLOCKSIZE>
__global__ void sgemm_coalesced(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const int row = blockIdx.x * BLOCKSIZE + (threadIdx.x / BLOCKSIZE);
  const int col = blockIdx.y * BLOCKSIZE + (threadIdx.x % BLOCKSIZE);
  if (row < M && col < N) {
    float tmp = 0.0;
    for (int i = 0; i < K; ++i) tmp += A[row * K + i] * B[i * N + col];
    C[row * N + col] = alpha * tmp + beta * C[row * N + col];
  }
}

template <const int BLOCKSIZE>
__global__ void sgemm_shared(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  __shared__ float As[BLOCKSIZE * BLOCKSIZE];
  __shared__ float Bs[BLOCKSIZE * BLOCKSIZE];
  const uint ty = threadIdx.x / BLOCKSIZE, tx = threadIdx.x % BLOCKSIZE;
  A += blockIdx.x * BLOCKSIZE * K;
  B += blockIdx.y * BLOCKSIZE;
  C += blockIdx.x * BLOCKSIZE * N + blockIdx.y * BLOCKSIZE;
  float tmp = 0.0;
  for (int k = 0; k < K; k += BLOCKSIZE) {
    As[ty * BLOCKSIZE + tx] = A[ty * K + tx];
    Bs[ty * BLOCKSIZE + tx] = B[ty * N + tx];
    __syncthreads();
    A += BLOCKSIZE;
    B += BLOCKSIZE * N;
    for (int i = 0; i < BLOCKSIZE; ++i) tmp += As[ty * BLOCKSIZE + i] * Bs[i * BLOCKSIZE + tx];
    __syncthreads();
  }
  C[ty * N + tx] = alpha * tmp + beta * C[ty * N + tx];
}

template <const int BM, const int BN, const int BK, const int TM>
__global__ void sgemm_tile1d(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  const int col = threadIdx.x % BN, row = threadIdx.x / BN;
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += blockIdx.y * BM * N + blockIdx.x * BN;
  float result[TM] = {0.0};
  for (uint k = 0; k < K; k += BK) {
    As[threadIdx.x] = A[threadIdx.x / BK * K + threadIdx.x % BK];
    Bs[threadIdx.x] = B[row * N + col];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (uint i = 0; i < BK; ++i) {
      float b = Bs[i * BN + col];
      for (uint j = 0; j < TM; ++j) result[j] += As[(row * TM + j) * BK + i] * b;
    }
    __syncthreads();
  }
  for (uint j = 0; j < TM; ++j)
    C[(row * TM + j) * N + col] = alpha * result[j] + beta * C[(row * TM + j) * N + col];
}

__global__ void sgemv(int M, int K, const float *__restrict__ A, const float *__restrict__ x, float *__restrict__ y) {
  const int row = blockIdx.x;
  float sum = 0.f;
  for (int i = threadIdx.x; i < K / 4; i += 32) {
    float4 a = reinterpret_cast<const float4 *>(A + row * K)[i];
    float4 v = reinterpret_cast<const float4 *>(x)[i];
    sum += a.x * v.x + a.y * v.y + a.z * v.z + a.w * v.w;
  }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x == 0) y[row] = sum;
}
