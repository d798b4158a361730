#include "columns.cuh"
#include "launch_overlap.cuh"

// table[position, i] = cos and sin of (offset + position) base^(-2 i / dim). In double precision: a float angle would be
// off by position 2^-24 radians.
extern "C" __global__ void rope_table(float* table, double base, long long offset, int length, int dim) {
    const int half = dim / 2, i = blockIdx.y * blockDim.x + threadIdx.x, position = blockIdx.x;
    let_next_begin();
    if (i >= half) return;
    double sine, cosine;
    sincos(static_cast<double>(offset + position) * exp2(-2.0 * i / dim * log2(base)), &sine, &cosine);
    float* const to = table + 2 * (static_cast<long long>(position) * half + i);
    to[0] = static_cast<float>(cosine);
    to[1] = static_cast<float>(sine);
}

__device__ inline void rotate(float& x, float& y, float cosine, float sine) {
    const float turned = fmaf(x, cosine, -y * sine);
    y = fmaf(x, sine, y * cosine);
    x = turned;
}

// Pairs (2i, 2i + 1) of the token's row; WIDTH is 4 or, where dim is no multiple of 4, 2.
template <int WIDTH>
__device__ void rotate_neighbours(const float* x, float* y, const float* turns, int group, int dim) {
    const int at = WIDTH * group;
    const float* const turn = turns + at % dim;
    if constexpr (WIDTH == 4) {
        float4 v = load4(x + at);
        const float4 t = load4(turn);
        rotate(v.x, v.y, t.x, t.y);
        rotate(v.z, v.w, t.z, t.w);
        store4(y + at, v);
    } else {
        float2 v = *reinterpret_cast<const float2*>(x + at);
        rotate(v.x, v.y, turn[0], turn[1]);
        *reinterpret_cast<float2*>(y + at) = v;
    }
}

// Pairs (i, i + dim / 2) of each head, WIDTH of them side by side; WIDTH is 4 or, where dim is no multiple of 8, 1.
template <int WIDTH>
__device__ void rotate_halves(const float* x, float* y, const float* turns, int group, int dim) {
    const int half = dim / 2, pair = WIDTH * group, i = pair % half, at = pair / half * dim + i;
    Group<WIDTH> low = load_group<WIDTH>(x + at), high = load_group<WIDTH>(x + at + half);
    float turn[2 * WIDTH];
#pragma unroll
    for (int k = 0; k < 2 * WIDTH; k += WIDTH) {
        const Group<WIDTH> t = load_group<WIDTH>(turns + 2 * i + k);
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) turn[k + w] = t.at[w];
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) rotate(low.at[k], high.at[k], turn[2 * k], turn[2 * k + 1]);
    store_group<WIDTH>(y + at, low);
    store_group<WIDTH>(y + at + half, high);
}

// `parts` blocks share a token's heads; each thread turns the pairs of one of its `groups`.
template <bool HALVES, int WIDTH>
__device__ void turn_tokens(const float* x, float* y, const float* table, int length, int heads, int dim, int groups,
                            int parts) {
    const int group = blockIdx.x % parts * blockDim.x + threadIdx.x;
    await_last_launch();
    if (group >= groups) return;
    const long long token = blockIdx.x / parts, row = token * heads * dim;
    const float* const turns = table + token % length * dim;
    if constexpr (HALVES) rotate_halves<WIDTH>(x + row, y + row, turns, group, dim);
    else rotate_neighbours<WIDTH>(x + row, y + row, turns, group, dim);
}

template <bool HALVES, int WIDTH>
__global__ void rope_encoding(const float* x, float* y, const float* table, int length, int heads, int dim, int groups,
                              int parts) {
    turn_tokens<HALVES, WIDTH>(x, y, table, length, heads, dim, groups, parts);
}

template <bool HALVES, int WIDTH>
__global__ void rope_encoding_in_place(float* x, const float* table, int length, int heads, int dim, int groups,
                                       int parts) {
    turn_tokens<HALVES, WIDTH>(x, x, table, length, heads, dim, groups, parts);
}
