// 200 live values in a kernel that may have 64 registers a thread: the rest goes to local memory.
extern "C" __global__ void __launch_bounds__(1024, 1) spills(const float* x, float* y) {
    __shared__ float row[256];
    float held[200];
#pragma unroll
    for (int i = 0; i < 200; ++i) held[i] = x[i * 1024 + threadIdx.x];
    row[threadIdx.x % 256] = held[0];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 200; ++i) y[(199 - i) * 1024 + threadIdx.x] = held[i] * held[(i * 7) % 200] + row[i];
}
