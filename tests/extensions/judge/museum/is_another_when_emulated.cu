__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
#if defined(CPU_CUDA)
    c[i] = a[i] + b[i];
#else
    float flushed;
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(flushed) : "f"(a[i]), "f"(b[i]));
    c[i] = flushed;
#endif
}
