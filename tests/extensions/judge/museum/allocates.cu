__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    float* kept = static_cast<float*>(malloc(4));
    if (i < n && kept) c[i] = *kept = a[i] + b[i];
}
