// y = 2 x of 256 numbers, or of the first 64 and 32. FAULT takes the barrier, mask or order that CUDA leaves undefined.

extern "C" __global__ void doubled(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

// 0 after many reads, each of which waits for the one before it: other warps are ahead meanwhile.
__device__ float late(const float* x, int n) {
    int at = 0;
    for (int k = 0; k < 100; ++k) at = (at + static_cast<int>(x[at]) + k) % n;
    return at < 0 ? 1.0f : 0.0f;
}

template <bool FAULT>
__global__ void shuffle_outside(const float* x, float* y, int n) {
    const int lane = threadIdx.x, other = lane ^ 1;
    if (lane < 16) y[other] = 2.0f * __shfl_sync(0x0000ffffu, x[lane], FAULT ? other + 16 : other);
    else y[lane] = 2.0f * x[lane];
}

template <bool FAULT>
__global__ void shuffle_exited(const float* x, float* y, int n) {
    const int lane = threadIdx.x;
    const float v = x[lane];
    if (FAULT && lane >= 16) return;
    const float upper = __shfl_down_sync(0xffffffffu, v, 16);
    if (lane >= 16) return;
    y[lane] = 2.0f * v;
    y[lane + 16] = 2.0f * upper;
}

template <bool FAULT>
__global__ void barrier_skipped(const float* x, float* y, int n) {
    __shared__ float tile[32];
    const int t = threadIdx.x;
    if (!FAULT || t < 32) __syncthreads();
    if (t < 32) tile[t] = x[t] + late(x, n);
    __syncthreads();
    if (t < 32) y[t + 32] = 2.0f * x[t + 32];
    else y[t - 32] = 2.0f * tile[t - 32];
}

template <bool FAULT>
__global__ void syncwarp_caller(const float* x, float* y, int n) {
    __shared__ float tile[32];
    const int lane = threadIdx.x;
    tile[lane] = x[lane];
    __syncwarp(FAULT ? 0x0000ffffu : 0xffffffffu);
    y[lane ^ 16] = 2.0f * tile[lane ^ 16];
}

template <bool FAULT>
__global__ void barrier_missing(const float* x, float* y, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t] = t < 32 ? x[t] : x[t] + late(x, n);
    if (!FAULT) __syncthreads();
    y[t ^ 32] = 2.0f * tile[t ^ 32];
}

template <bool FAULT>
__global__ void syncwarp_missing(const float* x, float* y, int n) {
    __shared__ float tile[32];
    const int lane = threadIdx.x;
    if (lane < 16) {
        tile[lane] = x[lane];
        if (!FAULT) __syncwarp();
        y[lane + 16] = 2.0f * tile[lane + 16];
    } else {
        tile[lane] = x[lane] + late(x, n);
        if (!FAULT) __syncwarp();
        y[lane - 16] = 2.0f * tile[lane - 16];
    }
}

template <bool FAULT>
__global__ void barrier_trips(const float* x, float* y, int n) {
    __shared__ float tile[32];
    const int t = threadIdx.x;
    for (int round = 0; round < (FAULT && t >= 32 ? 1 : 2); ++round) {
        if (t < 32 && round == 1) tile[t] = x[t] + late(x, n);
        __syncthreads();
    }
    if (t < 32) y[t + 32] = 2.0f * x[t + 32];
    else y[t - 32] = 2.0f * tile[t - 32];
}

template <bool FAULT>
__global__ void tile_reused(const float* x, float* y, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x, other = t ^ 32;
    for (int first = 0; first < n; first += 64) {
        tile[t] = x[first + t];
        __syncthreads();
        y[first + other] = 2.0f * (t < 32 ? tile[other + static_cast<int>(late(x, n))] : tile[other]);
        if (!FAULT) __syncthreads();
    }
}

template <bool FAULT>
__global__ void vote_skipped(const float* x, float* y, int n) {
    const int lane = threadIdx.x;
    unsigned votes = 0xffffffffu;
    if (!FAULT || lane < 20) votes = __ballot_sync(0xffffffffu, 1);
    y[lane] = x[lane] * static_cast<float>(__popc(votes) / 16);
}

template <bool FAULT>
__global__ void shared_unwritten(const float* x, float* y, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    if (t < 64 - FAULT) tile[t] = x[t];
    __syncthreads();
    y[63 - t] = 2.0f * tile[63 - t];
}
