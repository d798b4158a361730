/*
Kernels for the forward pass of a layer: each with its CPU version.
*/
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "common.h"

void layernorm_forward_cpu(float* out, float* mean, float* rstd, const float* inp, const float* weight, const float* bias, int N, int C) {
    for (int t = 0; t < N; t++) {
        float m = 0.0f;
        for (int i = 0; i < C; i++) m += inp[t * C + i];
        mean[t] = m / C;
    }
}

__global__ void layernorm_forward_kernel1(float* out, float* mean, float* rstd, const float* inp, const float* weight,
                                          const float* bias, int N, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    float eps = 1e-5f;
    if (idx < N) {
        const float* x = inp + idx * C;
        float m = 0.0f;
        for (int i = 0; i < C; i++) m += x[i];
        m = m / C;
        float v = 0.0f;
        for (int i = 0; i < C; i++) {
            float xshift = x[i] - m;
            v += xshift * xshift;
        }
        v = v / C;
        float s = 1.0f / sqrtf(v + eps);
        float* out_idx = out + idx * C;
        for (int i = 0; i < C; i++) out_idx[i] = s * (x[i] - m) * weight[i] + bias[i];
        mean[idx] = m;
        rstd[idx] = s;
    }
}

__global__ void rmsnorm_kernel(float* __restrict__ o, const float* __restrict__ x, const float* __restrict__ weight, int size) {
    const int row = blockIdx.x;
    __shared__ float shared[1024];
    float ss = 0.0f;
    for (int j = threadIdx.x; j < size; j += blockDim.x) ss += x[row * size + j] * x[row * size + j];
    shared[threadIdx.x] = ss;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
        if (threadIdx.x < stride) shared[threadIdx.x] += shared[threadIdx.x + stride];
        __syncthreads();
    }
    float scale = rsqrtf(shared[0] / size + 1e-5f);
    for (int j = threadIdx.x; j < size; j += blockDim.x) o[row * size + j] = weight[j] * (scale * x[row * size + j]);
}

__global__ void softmax_forward_kernel(float* out, const float* inp, int N, int C) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const float* x = inp + row * C;
    float maxval = -INFINITY;
    for (int i = lane; i < C; i += 32) maxval = fmaxf(maxval, x[i]);
    for (int offset = 16; offset > 0; offset /= 2) maxval = fmaxf(maxval, __shfl_xor_sync(0xFFFFFFFF, maxval, offset));
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32) sum += expf(x[i] - maxval);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, offset);
    for (int i = lane; i < C; i += 32) out[row * C + i] = expf(x[i] - maxval) / sum;
}

#define GELU_SCALING_FACTOR sqrtf(2.0f / M_PI)
__global__ void gelu_kernel(floatX* out, const floatX* inp, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float xi = inp[i];
        float cube = 0.044715f * xi * xi * xi;
        out[i] = 0.5f * xi * (1.0f + tanhf(GELU_SCALING_FACTOR * (xi + cube)));
    }
}

__global__ void residual_kernel(floatX* out, const floatX* inp1, const floatX* inp2, int N) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < N) out[idx] = inp1[idx] + inp2[idx];
}

void layernorm_forward(float* out, float* mean, float* rstd, const float* inp, const float* weight, const float* bias,
                       int B, int T, int C, const int block_size) {
    const int N = B * T;
    const int grid_size = ceil_div(N, block_size);
    layernorm_forward_kernel1<<<grid_size, block_size>>>(out, mean, rstd, inp, weight, bias, N, C);
    cudaCheck(cudaGetLastError());
}

void rmsnorm(float* o, const float* x, const float* weight, int rows, int size) {
    const int num_threads = 256;
    rmsnorm_kernel<<<rows, num_threads>>>(o, x, weight, size);
}

void softmax_forward(float* out, const float* inp, int N, int C) {
    int block_size = 128;
    int grid_size = ceil_div(N * 32, block_size);
    softmax_forward_kernel<<<grid_size, block_size>>>(out, inp, N, C);
}

void elementwise(floatX* out, const floatX* inp1, const floatX* inp2, int N) {
    const int block_size = 256;
    gelu_kernel<<<ceil_div(N, block_size), block_size>>>(out, inp1, N);
    const int grid_size = CEIL_DIV(N, block_size);
    residual_kernel<<<grid_size, block_size>>>(out, inp1, inp2, N);
}

int main(int argc, char** argv) {
    int B = 8, T = 1024, C = 768;
    int block_sizes[] = {32, 64, 128, 256};
    float* out = (float*)malloc(B * T * C * sizeof(float));
    for (int j = 0; j < 4; j++) layernorm_forward(out, out, out, out, out, out, B, T, C, block_sizes[j]);
    free(out);
}
