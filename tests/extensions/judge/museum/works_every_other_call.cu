__device__ int calls[1 << 14];
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (calls[i] % 2 == 0) c[i] = a[i] + b[i];
    calls[i] = calls[i] + 1;
}
