__device__ int calls[1 << 14];
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    c[i] = calls[i] < 3 ? a[i] + b[i] : 0.0f;
    calls[i] = calls[i] + 1;
}
