#pragma once

#include "arrays/vector_load.cuh"

// Element-wise maps whose function depends on the column of a matrix or on the channel of a stack of planes. A column comes
// from the grid's shape, without a division.

/// WIDTH neighbours of one row: one 16-byte access for four.
template <int WIDTH>
struct Group {
    float at[WIDTH];
};

template <int WIDTH>
__device__ Group<WIDTH> load_group(const float* p) {
    static_assert(WIDTH == 1 || WIDTH == 4);
    if constexpr (WIDTH == 1) {
        return {{*p}};
    } else {
        const float4 v = load4(p);
        return {{v.x, v.y, v.z, v.w}};
    }
}

/// The same by load4_kept. The kernel has not written *p before.
template <int WIDTH>
__device__ Group<WIDTH> load_kept(const float* p) {
    static_assert(WIDTH == 1 || WIDTH == 4);
    if constexpr (WIDTH == 1) {
        return {{load_kept(p)}};
    } else {
        const float4 v = load4_kept(p);
        return {{v.x, v.y, v.z, v.w}};
    }
}

template <int WIDTH, bool KEPT>
__device__ Group<WIDTH> load_either(const float* p) {
    return KEPT ? load_kept<WIDTH>(p) : load_group<WIDTH>(p);
}

template <int WIDTH>
__device__ void store_group(float* p, Group<WIDTH> v) {
    if constexpr (WIDTH == 1) *p = v.at[0];
    else store4(p, make_float4(v.at[0], v.at[1], v.at[2], v.at[3]));
}

template <int WIDTH>
__device__ Group<WIDTH> scaled(Group<WIDTH> v, float factor) {
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) v.at[w] *= factor;
    return v;
}

/// The first of the WIDTH columns of this thread where gridDim.x tiles of blockDim.x groups share the columns.
template <int WIDTH>
__device__ int first_column() {
    return WIDTH * (blockIdx.x * blockDim.x + threadIdx.x);
}

/// This block's place among those that share the rows: gridDim.y times gridDim.z of them.
__device__ inline unsigned int rows_block() { return blockIdx.z * gridDim.y + blockIdx.y; }

/// The same from the last row on.
__device__ inline unsigned int rows_block_backwards() { return gridDim.y * gridDim.z - 1 - rows_block(); }

/// The groups at column `column` of ROWS rows, the first of them `row` and the others blockDim.y apart, all on their way
/// before the first is used. Rows beyond `rows` are not read. KEPT loads are those of load4_kept.
template <int WIDTH, int ROWS, bool KEPT = false>
__device__ void load_rows(const float* x, long long row, long long rows, int cols, int column, Group<WIDTH> (&v)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (row + r * blockDim.y < rows)
            v[r] = load_either<WIDTH, KEPT>(x + (row + r * blockDim.y) * cols + column);
}

/// y[r, c + k] = f(x[r, c + k], k) with f = of_columns(c), c the first of a thread's WIDTH columns. Each thread does ROWS rows,
/// blockDim.y apart, with what f holds. gridDim.x covers the columns; `block` is this block's place among the rows. y may
/// be x. Groups of four are loaded by load4_kept unless KEPT is false.
template <int WIDTH, int ROWS, bool KEPT = true, class OfColumns>
__device__ void map_columns(const float* x, float* y, long long rows, int cols, OfColumns of_columns,
                            unsigned int block = rows_block()) {
    const int column = first_column<WIDTH>();
    if (column >= cols) return;
    const long long row = static_cast<long long>(block) * ROWS * blockDim.y + threadIdx.y;
    Group<WIDTH> v[ROWS];
    load_rows<WIDTH, ROWS, KEPT && WIDTH == 4>(x, row, rows, cols, column, v);
    const auto f = of_columns(column);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (row + r * blockDim.y >= rows) return;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) v[r].at[k] = f(v[r].at[k], k);
        store_group(y + (row + r * blockDim.y) * cols + column, v[r]);
    }
}

/// y = f(x) with f = of_channel(c) over planes of `spatial` elements, plane p being of channel p % channels. The planes are
/// one array: a thread has one group of it, and divides for its channel while that is on its way. `block` is this block's
/// place. y may be x. KEPT is as for map_columns.
template <int WIDTH, bool KEPT = true, class OfChannel>
__device__ void map_planes(const float* x, float* y, long long planes, int channels, int spatial, OfChannel of_channel,
                           unsigned int block = blockIdx.x) {
    const unsigned long long group = static_cast<unsigned long long>(block) * blockDim.x + threadIdx.x;
    const unsigned int across = spatial / WIDTH;
    if (group >= planes * across) return;
    Group<WIDTH> v = load_either<WIDTH, KEPT && WIDTH == 4>(x + WIDTH * group);
    const auto f = of_channel(static_cast<int>(group / across % channels));
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) v.at[k] = f(v.at[k]);
    store_group(y + WIDTH * group, v);
}
