// Accesses whose bytes, sectors and wavefronts can be counted by hand.
__global__ void copied(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
__global__ void copied_by_vector(const float4* x, float4* y) { y[threadIdx.x] = __ldg(x + threadIdx.x); }
__global__ void strided(const float* x, float* y, int stride) { y[threadIdx.x] = x[threadIdx.x * stride]; }
__global__ void one_for_all(const float* x, float* y) { y[threadIdx.x] = x[0]; }
__global__ void bytes(const unsigned char* x, unsigned char* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void banks(float* y, int stride) {
    __shared__ float tile[1024];
    tile[threadIdx.x * stride] = 1;
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x * stride];
}
__global__ void histogram(const int* x, unsigned int* bins) { atomicAdd(bins + x[threadIdx.x], 1u); }
__global__ void last_block_sums(const float* x, float* parts, float* y, unsigned int* arrived) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = x[blockIdx.x];
        __threadfence();
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x) return;
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
    *y = sum;
}

struct Pair {
    float first, second;
};

__device__ float folded(Pair pair) {
    for (int i = 0; i < 5; ++i) pair = {pair.first * 0.5f + pair.second, pair.second - pair.first * 0.25f};
    return pair.first + pair.second;
}

// Where a struct is read and handed on by value.
__global__ void by_value(const Pair* pairs, float* y) {
    y[threadIdx.x] = folded(pairs[threadIdx.x]) - folded(pairs[threadIdx.x ^ 1]);
}
