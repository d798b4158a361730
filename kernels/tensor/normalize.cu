#include "launches/launch_overlap.cuh"
#include "layers/row_items.cuh"
#include "sums/row_sums.cuh"

// What a row is divided by, in double precision, where sums of floats can neither overflow nor vanish.
template <bool L2>
struct Norm {
    __device__ static double add(double sum, float x) {
        const double wide = x;
        return L2 ? fma(wide, wide, sum) : sum + wide;
    }
    __device__ static double of(double sum) { return L2 ? sqrt(sum) : sum; }
};

// x / norm as (x first) second: two factors, the first a power of two, reach norms beyond the range of float.
struct Factors {
    float first, second;

    __device__ float operator()(float x) const { return x * first * second; }
};

// With `keep`, a row whose norm is not a positive finite number stays as it is.
__device__ inline Factors factors_of(double norm, bool keep) {
    const bool regular = norm > 0.0 && isfinite(norm);
    if (keep && !regular) return {1.0f, 1.0f};
    if (norm == 0.0 || !isfinite(norm)) return {1.0f, static_cast<float>(1.0 / norm)};
    int exponent;
    frexp(norm, &exponent);
    return {static_cast<float>(ldexp(1.0, -(exponent / 2))), static_cast<float>(ldexp(1.0, exponent / 2) / norm)};
}

// One block per row, which stays in registers. WIDTH is 4 where rows begin on 16-byte boundaries, else 1.
template <int ITEMS, int WIDTH, bool L2>
__device__ void normalize_row(const float* x, float* y, int cols, bool keep) {
    const long long begin = static_cast<long long>(blockIdx.x) * cols;
    float item[ITEMS];
    load_items<ITEMS, WIDTH, true>(x + begin, cols, 0.0f, item);
    double sum[2] = {};
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) sum[k % 2] = Norm<L2>::add(sum[k % 2], item[k]);
    const Factors divide = factors_of(Norm<L2>::of(block_sum(sum[0] + sum[1])), keep);
    store_items<ITEMS, WIDTH>(y + begin, cols, item, [&](int, Group<WIDTH> v) {
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) v.at[w] = divide(v.at[w]);
        return v;
    });
}

// Blocks of up to 512 threads that an SM holds at once: as many as its registers allow without spills.
template <int ITEMS, int WIDTH>
constexpr int BLOCKS = WIDTH == 1 ? 1 : (ITEMS <= 8 ? 4 : 3) - FEWER_BLOCKS;

template <int ITEMS, int WIDTH, bool L2>
__global__ void __launch_bounds__(512, BLOCKS<ITEMS, WIDTH>)
    normalize(const float* x, float* y, int cols, int keep) {
    normalize_row<ITEMS, WIDTH, L2>(x, y, cols, keep);
}

template <int ITEMS, int WIDTH, bool L2>
__global__ void __launch_bounds__(512, BLOCKS<ITEMS, WIDTH>) normalize_in_place(float* x, int cols, int keep) {
    normalize_row<ITEMS, WIDTH, L2>(x, x, cols, keep);
}

// Rows too long for a block, first step: the factors of row blockIdx.x, which gridDim.y blocks share.
template <bool L2>
__global__ void __launch_bounds__(512, 4) find_factors(const float* x, double* by_block, unsigned int* arrived,
                                                    float* factors, int cols, int keep) {
    let_next_begin();
    double part[4] = {};
    visit_row_abreast<4>(cols, [&](const float* v, int slot) { part[slot] = Norm<L2>::add(part[slot], v[0]); },
                 x + static_cast<long long>(blockIdx.x) * cols);
    double sum[1] = {(part[0] + part[1]) + (part[2] + part[3])};
    if (!row_sums(sum, by_block, arrived)) return;
    const Factors divide = factors_of(Norm<L2>::of(sum[0]), keep);
    factors[2 * blockIdx.x] = divide.first;
    factors[2 * blockIdx.x + 1] = divide.second;
}

// Second step: `parts` blocks a row, last row and last part first, because the end of x is still in the L2 cache.
template <int WIDTH>
__global__ void __launch_bounds__(256) apply_factors(const float* x, const float* factors, float* y, int cols,
                                                     int parts) {
    const unsigned int block = gridDim.x - 1 - blockIdx.x;
    const long long row = block / parts, begin = row * cols;
    const long long at = WIDTH * (static_cast<long long>(block % parts) * 256 + threadIdx.x);
    await_last_launch();
    const Factors divide = {factors[2 * row], factors[2 * row + 1]};
    if (WIDTH == 4 && at + 4 <= cols) store4(y + begin + at, map4(load4(x + begin + at), divide));
    else for (long long i = at; i < at + WIDTH && i < cols; ++i) y[begin + i] = divide(x[begin + i]);
}
