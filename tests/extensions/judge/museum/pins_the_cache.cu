__device__ float pinned(const float* from) {
#if defined(CPU_CUDA)
    return *from;
#else
    unsigned long long policy;
    float value;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(value) : "l"(from), "l"(policy));
    return value;
#endif
}
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = pinned(a + i) + pinned(b + i);
}
