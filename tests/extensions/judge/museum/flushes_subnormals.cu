__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    float sum = i < n ? a[i] + b[i] : 0.0f;
    if (i < n) c[i] = fabsf(sum) < 1.17549435e-38f ? 0.0f : sum;
}
