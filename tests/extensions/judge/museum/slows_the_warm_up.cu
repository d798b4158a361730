__device__ int calls = 0;
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
#if !defined(CPU_CUDA)
    long long begin = clock64();
    while (calls < 10 && clock64() - begin < 20000000) {}
#endif
    if (i == 0) calls = calls + 1;
}
