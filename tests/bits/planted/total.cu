// The sum of all x, in ways whose bits depend on the order of arrival or on the launch, and in ways whose bits do not.
__device__ float block_sum(float mine) {
    __shared__ float sums[256];
    __syncthreads();
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

__device__ float piece(const float* x, int n, int number, int pieces) {
    return strided(x, int((long long)n * number / pieces), int((long long)n * (number + 1) / pieces));
}

// One block, one tree.
extern "C" __global__ void tree(const float* x, float* y, int n) {
    float sum = block_sum(strided(x, 0, n));
    if (threadIdx.x == 0) y[0] = sum;
}

// Blocks add to one number.
extern "C" __global__ void atomic_grid(const float* x, float* y, int n) {
    float sum = block_sum(piece(x, n, blockIdx.x, gridDim.x));
    if (threadIdx.x == 0) atomicAdd(y, sum);
}

// Threads add to one number of their block.
extern "C" __global__ void atomic_block(const float* x, float* partial, int n) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0.0f;
    __syncthreads();
    atomicAdd(&total, piece(x, n, blockIdx.x, gridDim.x));
    __syncthreads();
    if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

// Blocks add in turn, without an atomic addition.
extern "C" __global__ void turns(const float* x, float* y, int n) {
    float sum = block_sum(piece(x, n, blockIdx.x, gridDim.x));
    if (threadIdx.x) return;
    unsigned *word = (unsigned*)y, old = atomicOr(word, 0u), seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, __float_as_uint(__uint_as_float(seen) + sum));
    } while (old != seen);
}

// A partial sum for each block, of the piece of its number.
extern "C" __global__ void parts(const float* x, float* partial, int n) {
    float sum = block_sum(piece(x, n, blockIdx.x, gridDim.x));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// The same, of the piece that is next.
extern "C" __global__ void queue(const float* x, float* partial, unsigned* ticket, int n) {
    __shared__ unsigned number;
    if (threadIdx.x == 0) number = atomicAdd(ticket, 1u);
    __syncthreads();
    float sum = block_sum(piece(x, n, number, gridDim.x));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void sum_parts(const float* partial, float* y, int count) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += partial[i];
    y[0] = sum;
}

// The block that comes last adds all partial sums, in the order of their numbers.
extern "C" __global__ void last_block(const float* x, float* partial, unsigned* ticket, float* y, int n) {
    float sum = block_sum(piece(x, n, blockIdx.x, gridDim.x));
    if (threadIdx.x) return;
    partial[blockIdx.x] = sum;
    __threadfence();
    if (atomicAdd(ticket, 1u) != gridDim.x - 1) return;
    __threadfence();
    float all = 0.0f;
    for (int i = 0; i < gridDim.x; ++i) all += ((volatile float*)partial)[i];
    y[0] = all;
}

// Integers of 2^-32, whose sum is the same in any order.
extern "C" __global__ void fixed_point(const float* x, unsigned long long* fixed, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(fixed, (unsigned long long)llrint(double(x[i]) * 4294967296.0));
}

extern "C" __global__ void from_fixed(const unsigned long long* fixed, float* y) {
    y[0] = float(double((long long)fixed[0]) / 4294967296.0);
}

// 256 partial sums whatever the threads: each of these has several.
extern "C" __global__ void same_lanes(const float* x, float* y, int n) {
    __shared__ float sums[256];
    for (int lane = threadIdx.x; lane < 256; lane += blockDim.x) {
        sums[lane] = 0.0f;
        for (int i = lane; i < n; i += 256) sums[lane] += x[i];
    }
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        for (int lane = threadIdx.x; lane < half; lane += blockDim.x) sums[lane] += sums[lane + half];
    }
    if (threadIdx.x == 0) y[0] = sums[0];
}
