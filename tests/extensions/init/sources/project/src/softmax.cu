/* Softmax of rows, with a CPU reference. */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include "common.h"

constexpr int kThreads = 256;
static cublasHandle_t handle;

// ----------------------------------------------------------------------------
// CPU reference
void softmax_cpu(float* out, const float* inp, int N, int C) {
    for (int i = 0; i < N; i++) {
        float maxval = -INFINITY;
        for (int j = 0; j < C; j++) maxval = fmaxf(maxval, inp[i * C + j]);
        double sum = 0.0;
        for (int j = 0; j < C; j++) sum += out[i * C + j] = expf(inp[i * C + j] - maxval);
        for (int j = 0; j < C; j++) out[i * C + j] /= (float)sum;
    }
}

// ----------------------------------------------------------------------------
// GPU kernels
__global__ void softmax_kernel1(float* out, const float* inp, int N, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        const float* row = inp + i * C;
        float maxval = -FLT_MAX;
        for (int j = 0; j < C; j++) maxval = fmaxf(maxval, row[j]);
        float sum = 0.0f;
        for (int j = 0; j < C; j++) sum += expf(row[j] - maxval);
        for (int j = 0; j < C; j++) out[i * C + j] = expf(row[j] - maxval) / sum;
    }
}

DEVICE_INLINE float warp_max(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
    return value;
}

DEVICE_INLINE float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

namespace fast {
template <typename T, int kWarps>
__global__ void __launch_bounds__(kWarps * 32) softmax_kernel2(T* __restrict__ out, const T* __restrict__ inp, int N, int C) {
    extern __shared__ float parts[];
    const T* row = inp + blockIdx.x * C;
    float maxval = -INFINITY;
    for (int j = threadIdx.x; j < C; j += blockDim.x) maxval = fmaxf(maxval, row[j]);
    maxval = warp_max(maxval);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = maxval;
    __syncthreads();
    for (int w = 0; w < kWarps; w++) maxval = fmaxf(maxval, parts[w]);
    __syncthreads();
    float sum = 0.0f;
    for (int j = threadIdx.x; j < C; j += blockDim.x) sum += expf(row[j] - maxval);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < kWarps; w++) sum += parts[w];
    for (int j = threadIdx.x; j < C; j += blockDim.x) out[blockIdx.x * C + j] = expf(row[j] - maxval) / sum;
}
}  // namespace fast

// ----------------------------------------------------------------------------
// launchers
void softmax1(float* out, const float* inp, int N, int C, const int block_size) {
    const int grid_size = ceil_div(N, block_size);
    softmax_kernel1<<<grid_size, block_size>>>(out, inp, N, C);
    CUDA_CHECK(cudaGetLastError());
}

void softmax2(float* out, const float* inp, int N, int C, cudaStream_t stream) {
    dim3 grid(N), block(kThreads);
    fast::softmax_kernel2<float, 8><<<grid, block, 8 * sizeof(float), stream>>>(out, inp, N, C);
    CUDA_CHECK(cudaGetLastError());
}

int main(int argc, char** argv) {
    int N = 8 * 1024, C = 1024;
    std::vector<float> inp = random_floats((size_t)N * C), out(inp.size());
    float *d_out, *d_inp;
    CUDA_CHECK(cudaMalloc(&d_out, inp.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_inp, inp.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_inp, inp.data(), inp.size() * sizeof(float), cudaMemcpyHostToDevice));
    cublasCreate(&handle);
    softmax_cpu(out.data(), inp.data(), N, C);
    softmax1(d_out, d_inp, N, C, 128);
    softmax2(d_out, d_inp, N, C, 0);
    CUDA_CHECK(cudaDeviceSynchronize());
    cublasDestroy(handle);
    cudaFree(d_out);
    cudaFree(d_inp);
    return 0;
}
