#include <cuda_pipeline.h>

#include "sequences/psi_weights.cuh"
#include "sums/scan.cuh"
#include "arrays/vector_load.cuh"

// Variances of forecasts: running sums of sigma^2 (random walk), or sigma^2 times the running sum of psi^2 (AR model).

constexpr int TILE_CHUNKS = 4, TILE_WARPS = 8, TILE = TILE_CHUNKS * TILE_WARPS * CHUNK;

/// Four neighbours of a row that ends after `left` more; whole vectors where rows begin on 16-byte boundaries.
struct Four {
    long long at;
    long long left;
    bool aligned;

    __device__ bool whole() const { return aligned && left >= 4; }
    __device__ void read(const float* from, float (&x)[4]) const {
        if (whole()) {
            const float4 v = load4(from + at);
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        } else {
            for (int j = 0; j < 4; ++j) x[j] = j < left ? from[at + j] : 0.0f;
        }
    }
    __device__ void write(float* to, const float (&x)[4]) const {
        if (whole()) store4(to + at, make_float4(x[0], x[1], x[2], x[3]));
        else
            for (int j = 0; j < 4; ++j)
                if (j < left) to[at + j] = x[j];
    }
};

struct Variances {
    float* variance;

    __device__ void write(const Four& four, const float (&v)[4]) const { four.write(variance, v); }
};

/// The band mean -+ z sqrt(V) besides.
struct Bands {
    float* variance;
    const float* mean;
    float *lower, *upper, z;

    __device__ void write(const Four& four, const float (&v)[4]) const {
        float middle[4], low[4], high[4];
        four.read(mean, middle);
        for (int j = 0; j < 4; ++j) {
            const float half = z * sqrtf(v[j]);
            low[j] = middle[j] - half, high[j] = middle[j] + half;
        }
        four.write(variance, v);
        four.write(lower, low);
        four.write(upper, high);
    }
};

__device__ inline float read_squares(const Four& four, const float* sigma, float (&x)[4]) {
    four.read(sigma, x);
    for (int j = 0; j < 4; ++j) x[j] *= x[j];
    return scan_chunk(x);
}

template <class Output>
__device__ void write_sums(const Four& four, const Output& output, double before, float (&x)[4]) {
    const Carry carry(before);
    for (int j = 0; j < 4; ++j) x[j] = carry.plus(x[j]);
    output.write(four, x);
}

/// A warp for each row.
template <class Output>
__device__ void walk_rows(const float* sigma, const Output& output, long long rows, long long cols) {
    const long long row = grid_thread() / 32;
    if (row >= rows) return;
    double before = 0.0;
    for (long long begin = 0; begin < cols; begin += CHUNK) {
        const long long col = begin + threadIdx.x % 32 * 4;
        const Four four = {row * cols + col, cols - col, cols % 4 == 0};
        float x[4];
        const float sum = read_squares(four, sigma, x);
        write_sums(four, output, before, x);
        before += sum;
    }
}

/// Rows in tiles, which blocks take in the order of their tickets and keep in registers while they look back: one read.
/// `states` holds the next ticket and a word for each tile.
template <class Output>
__device__ void walk_tiles(const float* sigma, const Output& output, unsigned long long* states, long long cols, int tiles) {
    __shared__ unsigned long long ticket;
    __shared__ double by_warp[TILE_WARPS], before_tile;
    if (threadIdx.x == 0) ticket = atomicAdd(states, 1ull);
    __syncthreads();
    const long long row = static_cast<long long>(ticket / tiles);
    const int tile = static_cast<int>(ticket % tiles), warp = threadIdx.x / 32;
    const long long begin = static_cast<long long>(tile) * TILE + warp * TILE_CHUNKS * CHUNK + threadIdx.x % 32 * 4;
    const bool aligned = cols % 4 == 0 || row == 0;
    const auto four = [&](int k) {
        const long long col = begin + k * CHUNK;
        return Four{row * cols + col, cols - col, aligned};
    };
    float x[TILE_CHUNKS][4], sum[TILE_CHUNKS];
#pragma unroll
    for (int k = 0; k < TILE_CHUNKS; ++k) sum[k] = read_squares(four(k), sigma, x[k]);
    double own = 0.0;
    for (int k = 0; k < TILE_CHUNKS; ++k) own += sum[k];
    if (threadIdx.x % 32 == 0) by_warp[warp] = own;
    __syncthreads();
    if (warp == 0) {
        double all = 0.0;
        for (int w = 0; w < TILE_WARPS; ++w) all += by_warp[w];
        const double before = sum_before(all, tile, states + 1 + row * tiles);
        if (threadIdx.x == 0) before_tile = before;
    }
    __syncthreads();
    double before = before_tile;
    for (int w = 0; w < warp; ++w) before += by_warp[w];
#pragma unroll
    for (int k = 0; k < TILE_CHUNKS; ++k) {
        write_sums(four(k), output, before, x[k]);
        before += sum[k];
    }
}

/// Rows in tiles of CHUNKS chunks for each warp, as many at a time as there are blocks: a wave. A block's next tile is on its
/// way while it scans the present one; every block adds up the sums of its wave's tiles itself, so that none looks back
/// further. All blocks are on the device together.
template <int CHUNKS, class Output>
struct Waves {
    static constexpr int THREADS = 1024, SIZE = THREADS / 32 * CHUNKS * CHUNK;
    const float* sigma;
    const Output& output;
    unsigned long long* states;  // of all tiles, 0 before
    long long cols;
    int tiles, all;  // of a row, and of all rows: fewer than 2^31, as divisions of 64 bits would take a third of a wave
    float* stages;   // of 2 SIZE floats

    __device__ Waves(const float* sigma, const Output& output, unsigned long long* states, long long rows, long long cols,
                     float* stages)
        : sigma(sigma), output(output), states(states), cols(cols), tiles(static_cast<int>((cols + SIZE - 1) / SIZE)),
          all(static_cast<int>(rows) * tiles), stages(stages) {}

    __device__ int place(int k) const {
        return (static_cast<int>(threadIdx.x) / 32 * CHUNKS + k) * CHUNK + threadIdx.x % 32 * 4;
    }
    /// The tile of that number, and a thread's part of it; nothing behind the last tile.
    __device__ Four tile_of(int number) const {
        const int row = number / tiles;
        const long long col = static_cast<long long>(number - row * tiles) * SIZE;
        return number < all ? Four{row * cols + col, cols - col, cols % 4 == 0 || row == 0} : Four{0, 0, false};
    }
    __device__ Four four(const Four& tile, int k) const { return {tile.at + place(k), tile.left - place(k), tile.aligned}; }
    __device__ void start(int number, int stage) const {
        const Four own = tile_of(number);
#pragma unroll
        for (int k = 0; k < CHUNKS; ++k) {
            float* const to = stages + stage * SIZE + place(k);
            const Four from = four(own, k);
            float x[4];
            if (from.whole()) {
                __pipeline_memcpy_async(to, sigma + from.at, 16);
            } else {
                from.read(sigma, x);
                store4(to, make_float4(x[0], x[1], x[2], x[3]));
            }
        }
        __pipeline_commit();
    }

    /// The sum of the wave's tiles before this block's in its row; `carry` is that of the last wave's last
    /// row, and becomes this wave's. All threads call it.
    __device__ double exchange(double own, int first, double& carry) const {
        const int blocks = gridDim.x, number = first + blockIdx.x, last = min(all, first + blocks) - 1;
        const int row = number / tiles, first_row = first / tiles, last_row = last / tiles;
        if (threadIdx.x == 0 && number < all) TileState::publish(states + number, own, TileState::OWN);
        double before = 0.0, onward = 0.0;
        const int other = first + threadIdx.x;
        if (static_cast<int>(threadIdx.x) < blocks && other <= last) {
            const double sum = TileState::wait_for(states + other).sum();
            const int other_row = other / tiles;
            if (other < number && other_row == row) before = sum;
            if (other_row == last_row) onward = sum;
        }
        before = block_sum(before), onward = block_sum(onward);
        if (first == first_row * tiles) carry = 0.0;
        if (row == first_row) before += carry;
        carry = onward + (last_row == first_row ? carry : 0.0);
        return before;
    }

    __device__ void walk() const {
        __shared__ double by_warp[THREADS / 32];
        const int warp = threadIdx.x / 32;
        double carry = 0.0;
        start(blockIdx.x, 0);
        int stage = 0;
        for (int first = 0; first < all; first += gridDim.x, stage ^= 1) {
            const int number = first + blockIdx.x;
            start(number + gridDim.x, stage ^ 1);
            __pipeline_wait_prior(1);
            float x[CHUNKS][4], sum[CHUNKS];
            double own = 0.0;
#pragma unroll
            for (int k = 0; k < CHUNKS; ++k) {
                const float4 v = load4(stages + stage * SIZE + place(k));
                x[k][0] = v.x * v.x, x[k][1] = v.y * v.y, x[k][2] = v.z * v.z, x[k][3] = v.w * v.w;
                sum[k] = scan_chunk(x[k]);
                own += sum[k];
            }
            if (threadIdx.x % 32 == 0) by_warp[warp] = own;
            __syncthreads();
            double tile = 0.0;
            for (int w = 0; w < THREADS / 32; ++w) tile += by_warp[w];
            double before = exchange(tile, first, carry);
            for (int w = 0; w < warp; ++w) before += by_warp[w];
            const Four to = tile_of(number);
#pragma unroll
            for (int k = 0; k < CHUNKS; ++k) {
                write_sums(four(to, k), output, before, x[k]);
                before += sum[k];
            }
            __syncthreads();
        }
    }
};

template <int CHUNKS>
__global__ void __launch_bounds__(1024, 1)
    variance_waves(const float* sigma, float* variance, unsigned long long* states, long long rows, long long cols) {
    extern __shared__ float4 stages[];
    const Variances output = {variance};
    Waves<CHUNKS, Variances>(sigma, output, states, rows, cols, reinterpret_cast<float*>(stages)).walk();
}

extern "C" __global__ void __launch_bounds__(256)
    variance_rows(const float* sigma, float* variance, long long rows, long long cols) {
    walk_rows(sigma, Variances{variance}, rows, cols);
}

extern "C" __global__ void __launch_bounds__(256)
    variance_tiles(const float* sigma, float* variance, unsigned long long* states, long long cols, int tiles) {
    walk_tiles(sigma, Variances{variance}, states, cols, tiles);
}

extern "C" __global__ void __launch_bounds__(256)
    band_rows(const float* sigma, const float* mean, float* variance, float* lower, float* upper, long long rows,
              long long cols, float z) {
    walk_rows(sigma, Bands{variance, mean, lower, upper, z}, rows, cols);
}

extern "C" __global__ void __launch_bounds__(256)
    band_tiles(const float* sigma, const float* mean, float* variance, float* lower, float* upper,
               unsigned long long* states, long long cols, int tiles, float z) {
    walk_tiles(sigma, Bands{variance, mean, lower, upper, z}, states, cols, tiles);
}

constexpr int AR_ROWS = 8;  // of a warp at most, which share what it reads of `growth`

template <class Output>
__device__ void scale_growth(const float* sigma, const float* growth, const Output& output, long long rows, long long cols) {
    const long long warps = grid_threads() / 32, each = (rows + warps - 1) / warps, first = grid_thread() / 32 * each;
    if (first >= rows) return;
    const int count = static_cast<int>(min(each, rows - first)), lane = threadIdx.x % 32;
    const float own = lane < count ? sigma[first + lane] : 0.0f, variance = own * own;
    for (long long chunk = 0; chunk < cols; chunk += CHUNK) {
        const long long col = chunk + lane * 4;
        float x[4];
        Four{col, cols - col, true}.read(growth, x);
#pragma unroll
        for (int k = 0; k < AR_ROWS; ++k) {
            const float scale = __shfl_sync(FULL_WARP, variance, k);
            const float scaled[4] = {x[0] * scale, x[1] * scale, x[2] * scale, x[3] * scale};
            if (k < count && col < cols) output.write(Four{(first + k) * cols + col, cols - col, cols % 4 == 0}, scaled);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    variance_ar(const float* sigma, float* variance, const float* growth, long long rows, long long cols) {
    scale_growth(sigma, growth, Variances{variance}, rows, cols);
}

extern "C" __global__ void __launch_bounds__(256)
    band_ar(const float* sigma, const float* mean, float* variance, float* lower, float* upper, const float* growth,
            long long rows, long long cols, float z) {
    scale_growth(sigma, growth, Bands{variance, mean, lower, upper, z}, rows, cols);
}
