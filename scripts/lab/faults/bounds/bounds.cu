// y = 2 x of 64 numbers. FAULT takes the index that is outside of its buffer.

extern "C" __global__ void doubled(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

template <bool FAULT>
__global__ void global_read(const float* x, float* y, int n) {
    const int t = threadIdx.x;
    y[t] = x[t] + x[t < n - 1 ? t : n - !FAULT];
}

template <bool FAULT>
__global__ void global_write(const float* x, float* y, int n) {
    const int i = threadIdx.x;
    if (i < n + FAULT) y[i] = 2.0f * x[i % n];
}

template <bool FAULT>
__global__ void shared_static(const float* x, float* y, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t + FAULT] = x[t];
    __syncthreads();
    y[63 - t] = 2.0f * tile[63 - t + FAULT];
}

template <bool FAULT>
__global__ void local_array(const float* x, float* y, int n) {
    float own[8];
    const int t = threadIdx.x, first = n / 64 + 3;  // 4, which the compiler does not know
    for (int k = 0; k < 4; ++k) own[first + k] = x[t];
    y[t] = own[first] + own[first + 3 + FAULT];
}

template <bool FAULT>
__global__ void negative_index(const float* x, float* y, int n) {
    const int t = threadIdx.x;
    y[t] = x[t] + x[t > 0 ? t : -FAULT];
}

template <bool FAULT>
__global__ void far_below(const float* x, float* y, int n) {
    const int t = threadIdx.x;
    y[FAULT && t == 0 ? -(1ll << 40) : t] = 2.0f * x[t];
}

template <bool FAULT>
__global__ void columns(const float* x, float* y, int n) {
    const int row = threadIdx.x, across = 8;
    for (int column = 0; column < across + FAULT; ++column) y[row * across + column] = 2.0f * x[(row * across + column) % n];
}

// Two buffers in one: the first one's end is the second one's beginning.
template <bool FAULT>
__global__ void sub_buffer(const float* x, float* y, int n) {
    __shared__ float both[64];
    float *low = both, *high = both + 32;
    const int t = threadIdx.x;
    high[t] = x[t + 32];
    __syncthreads();
    low[FAULT && t == 31 ? 32 : t] = x[t];
    __syncthreads();
    y[t] = 2.0f * low[t];
    y[t + 32] = 2.0f * high[t];
}

__constant__ float two[8] = {2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f};

template <bool FAULT>
__global__ void constant_table(const float* x, float* y, int n) {
    const int t = threadIdx.x;
    y[t] = two[t % 8 + FAULT] * x[t];
}

template <bool FAULT>
__global__ void shared_dynamic(const float* x, float* y, int n) {
    extern __shared__ float dynamic[];
    const int t = threadIdx.x;
    dynamic[t + FAULT] = x[t];
    __syncthreads();
    y[63 - t] = 2.0f * dynamic[63 - t + FAULT];
}
