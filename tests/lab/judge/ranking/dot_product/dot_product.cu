__device__ double over_block(double value) {
    __shared__ double found[256];
    found[threadIdx.x] = value;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) found[threadIdx.x] += found[threadIdx.x + half];
    }
    __syncthreads();
    return found[0];
}

// Slow: one block for all.
__global__ void naive(const float* a, const float* b, float* result, long long n) {
    double sum = 0.0;
    for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += (double)a[i] * b[i];
    sum = over_block(sum);
    if (threadIdx.x == 0) *result = (float)sum;
}

// Fast: many blocks, and a second launch for what they found.
__global__ void good(const float* a, const float* b, double* parts, long long n) {
    double sum = 0.0;
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) sum += (double)a[i] * b[i];
    sum = over_block(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void last(const double* parts, float* result, int count) {
    double sum = 0.0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
    sum = over_block(sum);
    if (threadIdx.x == 0) *result = (float)sum;
}
