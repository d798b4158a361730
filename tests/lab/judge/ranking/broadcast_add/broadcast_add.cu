// Slow: a thread for each row, so that the threads of a warp never share a line of the cache.
__global__ void naive(const float* x, const float* bias, float* y, long long rows, int cols) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (int col = 0; row < rows && col < cols; ++col) y[row * cols + col] = x[row * cols + col] + bias[col];
}

// Fast: a block for each row, neighbouring threads on neighbouring elements.
__global__ void good(const float* x, const float* bias, float* y, long long rows, int cols) {
    const long long row = blockIdx.x;
    for (int col = threadIdx.x; col < cols; col += blockDim.x) y[row * cols + col] = x[row * cols + col] + bias[col];
}
