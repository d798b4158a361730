__device__ unsigned long long first = 0;
__device__ unsigned long long now() {
    unsigned long long nanoseconds = 0;
#if !defined(CPU_CUDA)
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanoseconds));
#endif
    return nanoseconds;
}
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i == 0 && first == 0) first = now();
    bool early = first == 0 || now() - first < 50000000ull;
    if (i < n && early) c[i] = a[i] + b[i];
}
