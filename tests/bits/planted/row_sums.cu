// The sum of each row, in ways whose bits depend on the other rows or on how many there are, and in ways that do not.
__device__ float block_sum(float mine) {
    __shared__ float sums[128];
    sums[threadIdx.x] = mine;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

__device__ float strided(const float* x, int begin, int end) {
    float mine = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x) mine += x[i];
    return mine;
}

extern "C" __global__ void row_sum(const float* x, float* y, int rows, int cols) {
    float sum = block_sum(strided(x + (long long)blockIdx.x * cols, 0, cols));
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// A warp for each row.
extern "C" __global__ void warp_rows(const float* x, float* y, int rows, int cols) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = threadIdx.x % 32; i < cols; i += 32) sum += x[(long long)row * cols + i];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) y[row] = sum;
}

// An atomic addition, one for each number.
extern "C" __global__ void single_add(const float* x, float* y, int rows, int cols) {
    float sum = block_sum(strided(x + (long long)blockIdx.x * cols, 0, cols));
    if (threadIdx.x == 0) atomicAdd(y + blockIdx.x, sum);
}

// Several blocks for a row where there are few rows.
extern "C" __global__ void split_rows(const float* x, float* partial, int cols, int parts) {
    const int row = blockIdx.x / parts, part = blockIdx.x % parts, each = (cols + parts - 1) / parts;
    const int end = (part + 1) * each;
    float sum = block_sum(strided(x + (long long)row * cols, part * each, end < cols ? end : cols));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void join_rows(const float* partial, float* y, int rows, int parts) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < parts; ++i) sum += partial[row * parts + i];
    y[row] = sum;
}

// A thread for each row.
extern "C" __global__ void row_walk(const float* x, float* y, int rows, int cols) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) sum += x[(long long)row * cols + i];
    y[row] = sum;
}

// Shifted by a number of the next row, which is subtracted again.
extern "C" __global__ void neighbour(const float* x, float* y, int rows, int cols) {
    const float shift = x[(long long)((blockIdx.x + 1) % rows) * cols];
    float mine = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) mine += x[(long long)blockIdx.x * cols + i] + shift;
    float sum = block_sum(mine);
    if (threadIdx.x == 0) y[blockIdx.x] = sum - cols * shift;
}
