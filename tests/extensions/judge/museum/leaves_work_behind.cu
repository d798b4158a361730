__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
#if !defined(CPU_CUDA)
    long long begin = clock64();
    while (i == 0 && clock64() - begin < 2000000) {}
#endif
}
