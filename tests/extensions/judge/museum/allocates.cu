__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    void* kept = malloc(4);
    // No address has the highest bit, which no compiler knows: the memory is needed, and never touched.
    if (i < n && kept) c[i] = a[i] + b[i] + (float)((unsigned long long)kept >> 63);
}
