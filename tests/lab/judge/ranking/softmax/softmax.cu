__device__ float over_block(float value, bool greatest) {
    __shared__ float found[32];
    for (int step = 16; step; step /= 2) {
        const float other = __shfl_xor_sync(~0u, value, step);
        value = greatest ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = value;
    __syncthreads();
    value = found[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) {
        value = greatest ? fmaxf(value, found[warp]) : value + found[warp];
    }
    return value;
}

// Slow: a thread for each row, three reads of it.
__global__ void naive(const float* x, float* y, int rows, int cols, float temperature) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* in = x + (long long)row * cols;
    float* out = y + (long long)row * cols;
    float greatest = in[0], sum = 0.0f;
    for (int i = 1; i < cols; ++i) greatest = fmaxf(greatest, in[i]);
    double total = 0.0;
    for (int i = 0; i < cols; ++i) total += expf((in[i] - greatest) / temperature);
    sum = (float)total;
    for (int i = 0; i < cols; ++i) out[i] = expf((in[i] - greatest) / temperature) / sum;
}

// Fast: a block for each row.
__global__ void good(const float* x, float* y, int rows, int cols, float temperature) {
    const float* in = x + (long long)blockIdx.x * cols;
    float* out = y + (long long)blockIdx.x * cols;
    float greatest = in[0], sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) greatest = fmaxf(greatest, in[i]);
    greatest = over_block(greatest, true);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf((in[i] - greatest) / temperature);
    sum = over_block(sum, false);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) out[i] = expf((in[i] - greatest) / temperature) / sum;
}
