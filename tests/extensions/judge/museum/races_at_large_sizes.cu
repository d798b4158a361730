template <bool WITH_BARRIER>
__device__ __forceinline__ void wait_for_others() {
    if constexpr (WITH_BARRIER) {
        __syncthreads();
    } else {
        for (int step = 0; step < 20000; step += clock64() != 0) continue;
    }
}

template <bool WITH_BARRIER>
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    __shared__ volatile float next[256];
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    int t = threadIdx.x;
    next[t] = i < n ? a[i] + b[i] : 0.0f;
    wait_for_others<WITH_BARRIER>();
    int other = t ^ 32;
    long long place = i - t + other;
    if (place < n) c[place] = next[other];
}
