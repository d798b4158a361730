#include "logarithms.cuh"
#include "row_sums.cuh"

// I = sum of p ln[p / (p_x p_y)] of tables [bx][by] of counts or probabilities. Every term compares a cell with what
// independence expects of it, r c / n, to about twice a float's precision: near independence the logarithms are small.

constexpr int STRIP = 128, BAND = 64;  // columns and rows of a tile; a warp takes four columns per lane, eight rows

/// A double as two floats.
struct Pair {
    float high, low;

    Pair() = default;
    __device__ explicit Pair(double x)
        : high(static_cast<float>(x)), low(isfinite(high) ? static_cast<float>(x - high) : 0.0f) {}
};

/// c ln[c / (row column)] of a cell c, near which `rest` is. A cell without counts has no term, whatever its margins, nor
/// one that is expected as exactly as margins are known.
__device__ inline float term(float c, float rest, Pair row, Pair column) {
    if (c == 0.0f) return 0.0f;
    const float expected = row.high * column.high;
    rest -= fmaf(row.high, column.high, -expected) + fmaf(row.high, column.low, row.low * column.high);
    const float difference = (c - expected) + rest;
    return fabsf(difference) < 0x1p-44f * c ? 0.0f : relative_entropy(c, expected, difference);
}

__device__ inline float term(float count, Pair row, Pair column) { return term(count, 0.0f, row, column); }

__device__ inline float term(int count, Pair row, Pair column) {
    const Pair c(static_cast<double>(count));
    return term(c.high, c.low, row, column);
}

/// The estimate from the sum of terms; `occupied` are cells, rows and columns with counts. Plug-in information is never
/// negative; the Miller-Madow correction may make it so.
__device__ inline float estimate(double terms, double n, const double (&occupied)[3], int corrected, double unit) {
    double information = terms / n;
    if (information < 0.0) information = 0.0;
    if (corrected) information -= (occupied[0] - occupied[1] - occupied[2] + 1.0) / (2.0 * n);
    return static_cast<float>(unit * information);
}

/// The sum over `count` values `apart` apart, by a warp.
template <class T>
__device__ double warp_total(const T* from, int count, long long apart) {
    double sum = 0.0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum += static_cast<double>(from[i * apart]);
    return warp_reduce(sum, Sum{});
}

// One block per table, which it keeps in shared memory beside its margins.
template <class Count>
__global__ void __launch_bounds__(128)
    mutual_information(const Count* joint, float* information, int bx, int by, int corrected, double unit) {
    extern __shared__ double on_chip[];
    double *const rows = on_chip, *const columns = on_chip + bx;
    Pair* const shares = reinterpret_cast<Pair*>(columns + by);
    Count* const table = reinterpret_cast<Count*>(shares + by);
    const Count* const from = joint + static_cast<long long>(blockIdx.x) * bx * by;
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, cells = bx * by;
#pragma unroll 8
    for (int i = threadIdx.x; i < cells; i += blockDim.x) table[i] = __ldcs(from + i);
    __syncthreads();
    for (int x = warp; x < bx; x += warps) {
        const double sum = warp_total(table + x * by, by, 1);
        if (threadIdx.x % 32 == 0) rows[x] = sum;
    }
    for (int y = threadIdx.x; y < by; y += blockDim.x) {
        double sum = 0.0;
        for (int x = 0; x < bx; ++x) sum += static_cast<double>(table[x * by + y]);
        columns[y] = sum;
    }
    __syncthreads();
    double n = 0.0, occupied[3] = {};
    for (int x = threadIdx.x; x < bx; x += blockDim.x) n += rows[x], occupied[1] += rows[x] != 0.0;
    n = block_sum(n);
    for (int y = threadIdx.x; y < by; y += blockDim.x) shares[y] = Pair(columns[y] / n), occupied[2] += columns[y] != 0.0;
    __syncthreads();
    double terms = 0.0;
    for (int x = warp; x < bx; x += warps) {
        const Pair row(rows[x]);
        float part = 0.0f;
        for (int y = threadIdx.x % 32; y < by; y += 32) {
            part += term(table[x * by + y], row, shares[y]);
            occupied[0] += table[x * by + y] != 0;
        }
        terms += part;
    }
    terms = block_sum(terms);
    for (int j = 0; j < 3; ++j) occupied[j] = corrected ? block_sum(occupied[j]) : 0.0;
    if (threadIdx.x == 0) information[blockIdx.x] = estimate(terms, n, occupied, corrected, unit);
}

/// Calls f(x, cell) for the rows of this warp's part of a tile: four cells, of columns first + 32 k.
template <class Count, class F>
__device__ void visit_tile(const Count* joint, int bx, int by, int first, int band, F f) {
    const int begin = band * BAND + threadIdx.x / 32 * 8, end = min(bx, begin + 8);
#pragma unroll 4
    for (int x = begin; x < end; ++x) {
        Count cell[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            cell[k] = first + 32 * k < by ? __ldg(joint + static_cast<long long>(x) * by + first + 32 * k) : Count(0);
        f(x, cell);
    }
}

// A large table, first: the sums of each tile's rows and columns.
template <class Count>
__global__ void __launch_bounds__(256)
    margin_parts(const Count* joint, double* row_parts, double* column_parts, int bx, int by) {
    __shared__ double by_warp[8][STRIP];
    const int strips = (by + STRIP - 1) / STRIP, strip = blockIdx.x % strips, band = blockIdx.x / strips;
    const int lane = threadIdx.x % 32;
    double column[4] = {};
    visit_tile(joint, bx, by, strip * STRIP + lane, band, [&](int x, const Count(&cell)[4]) {
        double sum = 0.0;
#pragma unroll
        for (int k = 0; k < 4; ++k) sum += cell[k], column[k] += cell[k];
        sum = warp_reduce(sum, Sum{});
        if (lane == 0) row_parts[static_cast<long long>(x) * strips + strip] = sum;
    });
#pragma unroll
    for (int k = 0; k < 4; ++k) by_warp[threadIdx.x / 32][lane + 32 * k] = column[k];
    __syncthreads();
    const int y = strip * STRIP + static_cast<int>(threadIdx.x);
    if (threadIdx.x >= STRIP || y >= by) return;
    double sum = 0.0;
    for (int w = 0; w < 8; ++w) sum += by_warp[w][threadIdx.x];
    column_parts[static_cast<long long>(band) * by + y] = sum;
}

// Then the margins themselves, a warp for each row and column, and in `totals`: n, occupied rows and columns.
extern "C" __global__ void __launch_bounds__(256)
    table_margins(const double* row_parts, const double* column_parts, double* rows, double* columns, double* totals,
            double* by_block, unsigned int* arrived, int bx, int by) {
    const int strips = (by + STRIP - 1) / STRIP, bands = (bx + BAND - 1) / BAND, warps = gridDim.y * (blockDim.x / 32);
    double sum[3] = {};
    for (long long i = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32; i < static_cast<long long>(bx) + by; i += warps) {
        const bool row = i < bx;
        const double margin = row ? warp_total(row_parts + i * strips, strips, 1) : warp_total(column_parts + i - bx, bands, by);
        if (threadIdx.x % 32 > 0) continue;
        (row ? rows + i : columns + i - bx)[0] = margin;
        if (row) sum[0] += margin;
        sum[row ? 1 : 2] += margin != 0.0;
    }
    if (row_sums(sum, by_block, arrived))
        for (int j = 0; j < 3; ++j) totals[j] = sum[j];
}

// At last the terms.
template <class Count>
__global__ void __launch_bounds__(256)
    table_terms(const Count* joint, float* information, const double* rows, const double* columns, const double* totals,
                double* by_block, unsigned int* arrived, int bx, int by, int corrected, double unit) {
    const int strips = (by + STRIP - 1) / STRIP, tiles = strips * ((bx + BAND - 1) / BAND);
    const double n = totals[0];
    PartialSums<1> partial;
    int occupied = 0;
    for (int tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
        const int first = tile % strips * STRIP + threadIdx.x % 32;
        Pair column[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) column[k] = Pair(first + 32 * k < by ? columns[first + 32 * k] / n : 0.0);
        visit_tile(joint, bx, by, first, tile / strips, [&](int x, const Count(&cell)[4]) {
            const Pair row(rows[x]);
#pragma unroll
            for (int k = 0; k < 4; ++k) partial.add(0, k, term(cell[k], row, column[k])), occupied += cell[k] != 0;
        });
    }
    double terms[1];
    partial.total(terms);
    double sum[2] = {terms[0], static_cast<double>(occupied)};
    if (!row_sums(sum, by_block, arrived)) return;
    const double counts[3] = {sum[1], totals[1], totals[2]};
    *information = estimate(sum[0], n, counts, corrected, unit);
}
