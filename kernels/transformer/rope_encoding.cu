#include "arrays/columns.cuh"

// turns[i] = cos and sin of position base^(-2 i / dim), for the threads of a block; `slope` is -2 log2(base) / dim. In
// double precision: a float angle would be off by position 2^-24 radians.
__device__ inline void tabulate(float* turns, double slope, long long position, int dim) {
    for (int i = threadIdx.x; i < dim / 2; i += blockDim.x) {
        double sine, cosine;
        sincos(static_cast<double>(position) * exp2(slope * i), &sine, &cosine);
        turns[2 * i] = static_cast<float>(cosine);
        turns[2 * i + 1] = static_cast<float>(sine);
    }
    __syncthreads();
}

__device__ inline void rotate(float& x, float& y, float cosine, float sine) {
    const float turned = fmaf(x, cosine, -y * sine);
    y = fmaf(x, sine, y * cosine);
    x = turned;
}

/// Pairs (2i, 2i + 1) of a token's row, WIDTH numbers; WIDTH is 4 or, where dim is no multiple of 4, 2.
template <int WIDTH>
struct Neighbours {
    float at[WIDTH];

    __device__ static int place(int group, int) { return WIDTH * group; }
    __device__ void load(const float* x, int place, int) {
        if constexpr (WIDTH == 4) *reinterpret_cast<float4*>(at) = load4_kept(x + place);
        else at[0] = x[place], at[1] = x[place + 1];
    }
    __device__ void turn(const float* turns, int place, int dim) {
#pragma unroll
        for (int k = 0; k < WIDTH; k += 2)
            rotate(at[k], at[k + 1], turns[place % dim + k], turns[place % dim + k + 1]);
    }
    __device__ void store(float* y, int place, int) const {
        if constexpr (WIDTH == 4) store4(y + place, *reinterpret_cast<const float4*>(at));
        else y[place] = at[0], y[place + 1] = at[1];
    }
};

/// Pairs (i, i + dim / 2) of a head, WIDTH of them side by side; WIDTH is 4 or, where dim is no multiple of 8, 1.
template <int WIDTH>
struct Halves {
    Group<WIDTH> low, high;

    __device__ static int place(int group, int dim) {
        const int half = dim / 2, pair = WIDTH * group;
        return pair / half * dim + pair % half;
    }
    __device__ void load(const float* x, int place, int dim) {
        low = load_kept<WIDTH>(x + place), high = load_kept<WIDTH>(x + place + dim / 2);
    }
    __device__ void turn(const float* turns, int place, int dim) {
        const int i = place % dim;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) rotate(low.at[k], high.at[k], turns[2 * (i + k)], turns[2 * (i + k) + 1]);
    }
    __device__ void store(float* y, int place, int dim) const {
        store_group(y + place, low), store_group(y + place + dim / 2, high);
    }
};

// `parts` blocks share a token's `groups` of pairs, EACH a thread; they are on their way while the block's first threads
// find the cosines and sines of the position.
template <class Pairs, int EACH>
__device__ void turn_tokens(const float* x, float* y, double slope, long long offset, int length, int heads, int dim,
                            int groups, int parts) {
    extern __shared__ __align__(16) float turns[];
    const long long token = blockIdx.x / parts, row = token * heads * dim;
    const int first = (blockIdx.x % parts * EACH) * blockDim.x + threadIdx.x;
    Pairs pairs[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int group = first + k * blockDim.x;
        if (group < groups) pairs[k].load(x + row, Pairs::place(group, dim), dim);
    }
    tabulate(turns, slope, offset + token % length, dim);
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int group = first + k * blockDim.x, place = Pairs::place(group, dim);
        if (group >= groups) return;
        pairs[k].turn(turns, place, dim);
        pairs[k].store(y + row, place, dim);
    }
}

template <class Pairs, int EACH>
__global__ void __launch_bounds__(512)
    rope_encoding(const float* x, float* y, double slope, long long offset, int length, int heads, int dim, int groups,
                  int parts) {
    turn_tokens<Pairs, EACH>(x, y, slope, offset, length, heads, dim, groups, parts);
}

template <class Pairs, int EACH>
__global__ void __launch_bounds__(512)
    rope_encoding_in_place(float* x, double slope, long long offset, int length, int heads, int dim, int groups,
                           int parts) {
    turn_tokens<Pairs, EACH>(x, x, slope, offset, length, heads, dim, groups, parts);
}
