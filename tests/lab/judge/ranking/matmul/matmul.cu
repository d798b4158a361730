// Slow: a thread for each element; neighbours are in one column, so that they read and write far from each other.
__global__ void naive(const float* a, const float* b, float* c, int m, int n, int k) {
    const int row = blockIdx.y * 16 + threadIdx.x, col = blockIdx.x * 16 + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[(long long)row * k + i] * b[(long long)i * n + col];
    c[(long long)row * n + col] = sum;
}

// Fast: tiles of 64 by 64 in shared memory, a thread for 4 by 4 elements.
__global__ void good(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[16][65], right[16][65];
    const int x = threadIdx.x, y = threadIdx.y, thread = 16 * y + x;
    const int top = blockIdx.y * 64, side = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int begin = 0; begin < k; begin += 16) {
        for (int at = thread; at < 1024; at += 256) {
            const int row = at / 16, inner = at % 16, across = at % 64, down = at / 64;
            const bool has = top + row < m && begin + inner < k, fits = begin + down < k && side + across < n;
            left[inner][row] = has ? a[(long long)(top + row) * k + begin + inner] : 0.0f;
            right[down][across] = fits ? b[(long long)(begin + down) * n + side + across] : 0.0f;
        }
        __syncthreads();
        for (int inner = 0; inner < 16; ++inner) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) sum[i][j] += left[inner][y + 16 * i] * right[inner][x + 16 * j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = top + y + 16 * i, col = side + x + 16 * j;
            if (row < m && col < n) c[(long long)row * n + col] = sum[i][j];
        }
    }
}
