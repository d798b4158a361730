__global__ void attack(const float*, const float*, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = 0.0f;
}
