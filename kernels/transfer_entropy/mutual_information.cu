#include "count_logs.cuh"
#include "row_sums.cuh"

// n I = sum of c ln c over cells - the same over rows and over columns + n ln n, of tables [bx][by] of counts or
// probabilities: one reading serves all four sums. They are in double precision, since near independence nearly all of
// them cancels. Where all cells are whole numbers below 1024 their logarithms are tabulated and sums of floats exact.

constexpr int STRIP = 128, BAND = 64;  // columns and rows of a tile; a warp takes four columns per lane, eight rows

/// What a table's cells and margins add up to; `excess` is occupied cells - rows - columns.
struct Sums {
    double logs = 0.0, n = 0.0;
    int excess = 0;

    __device__ void add_margin(double margin, double log) {
        logs -= log;
        excess -= margin != 0.0;
    }
};

/// m ln m of a margin: from the table where it has a place there.
template <class T>
__device__ double margin_log(T margin, const double* table) {
    bool small = sizeof(T) == sizeof(float);
    const int place = place_in_table(static_cast<float>(margin), small);
    return small ? __ldg(table + place) : x_log_x(static_cast<double>(margin));
}

__device__ inline double not_a_number() { return static_cast<double>(__int_as_float(0x7fc00000)); }

/// The estimate from n I: less than rounding makes of it is nothing. Plug-in information is never negative; the
/// Miller-Madow correction may make it so.
__device__ inline float estimate(const Sums& sums, int corrected, double unit) {
    const double n = sums.n, log_n = log(n), total = fma(n, log_n, sums.logs);
    double information = total < 0x1p-49 * n * (20.0 + fabs(log_n)) ? 0.0 : total / n;
    if (!(n > 0.0)) information = not_a_number();
    if (corrected) information -= (sums.excess + 1.0) / (2.0 * n);
    return static_cast<float>(unit * information);
}

template <class Count>
struct Fours;
template <>
struct Fours<float> { using type = float4; };
template <>
struct Fours<int> { using type = int4; };
template <class Count>
using Four = typename Fours<Count>::type;

/// The threads that share a table: a warp, or a block of four.
template <int WARPS>
struct Group {
    static constexpr int SIZE = 32 * WARPS;
    int thread = threadIdx.x % SIZE;

    __device__ bool all(bool own) const {
        if constexpr (WARPS == 1) {
            __syncwarp();
            return __all_sync(FULL_WARP, own);
        }
        return __syncthreads_and(own);
    }
    template <class T>
    __device__ T sum(T own) const {
        if constexpr (WARPS == 1) return warp_reduce(own, Sum{});
        else return block_reduce(own, Sum{}, T(0));
    }
};

/// Adds the margins of a table in shared memory, summed up in T.
template <class T, class G, class Count>
__device__ void add_margins(const G& group, const Count* cells, const double* table, int bx, int by, int pitch, Sums& sums) {
    for (int x = group.thread; x < bx; x += G::SIZE) {
        T margin = 0;
#pragma unroll 8
        for (int y = 0; y < by; ++y) margin += static_cast<T>(cells[x * pitch + y]);
        sums.add_margin(margin, margin_log(margin, table));
        sums.n += margin;
    }
    for (int y = group.thread; y < by; y += G::SIZE) {
        T margin = 0;
#pragma unroll 8
        for (int x = 0; x < bx; ++x) margin += static_cast<T>(cells[x * pitch + y]);
        sums.add_margin(margin, margin_log(margin, table));
    }
}

// A warp or a block of four per table, which stays in shared memory.
template <class Count, int WARPS>
__global__ void __launch_bounds__(128)
    mutual_information(const Count* joint, float* information, const double* table, int tables, int bx, int by,
                       int corrected, double unit) {
    extern __shared__ int on_chip[];
    using G = Group<WARPS>;
    const G group;
    const int slot = threadIdx.x / G::SIZE, cells = bx * by, pitch = by | 1;
    const long long own = static_cast<long long>(blockIdx.x) * (128 / G::SIZE) + slot;
    if (own >= tables) return;
    Count* const kept = reinterpret_cast<Count*>(on_chip) + slot * bx * pitch;
    const Count* const from = joint + own * cells;
    Sums sums;
    bool small = true;
    const auto take = [&](Count c, int at) {
        kept[at] = c;
        sums.logs += __ldg(table + place_in_table(c, small));
        sums.excess += c != Count(0);
    };
    if (by % 4 == 0 && misalignment(reinterpret_cast<const float*>(joint)) == 0) {  // four neighbours at a time, of one row
        const int across = by / 4, step = G::SIZE / across * pitch + G::SIZE % across * 4;
        int y = group.thread % across, at = group.thread / across * pitch + 4 * y;
#pragma unroll 4
        for (int i = group.thread; 4 * i < cells; i += G::SIZE) {
            const auto four = __ldcs(reinterpret_cast<const Four<Count>*>(from) + i);
            take(four.x, at), take(four.y, at + 1), take(four.z, at + 2), take(four.w, at + 3);
            at += step, y += G::SIZE % across;
            if (y >= across) y -= across, at += pitch - by;
        }
    } else {
        for (int i = group.thread; i < cells; i += G::SIZE) take(__ldcs(from + i), i / by * pitch + i % by);
    }
    if (group.all(small)) {
        add_margins<float>(group, kept, table, bx, by, pitch, sums);
    } else {
        sums.logs = 0.0;
        for (int i = group.thread; i < cells; i += G::SIZE)
            sums.logs += x_log_x(static_cast<double>(kept[i / by * pitch + i % by]));
        add_margins<double>(group, kept, table, bx, by, pitch, sums);
    }
    sums.logs = group.sum(sums.logs), sums.n = group.sum(sums.n);
    if (corrected) sums.excess = group.sum(sums.excess);
    if (group.thread == 0) information[own] = estimate(sums, corrected, unit);
}

/// This warp's part of a tile of a large table: four columns a lane, 32 apart, and up to eight rows.
template <class Count>
struct Part {
    const Count* joint;
    double* row_parts;
    int by, begin, end, first, strips, strip;

    /// Adds its cells up, in T, and writes the sums of its rows; `columns` are those of its columns. False where T was
    /// float and a cell had no place in the table.
    template <class T>
    __device__ bool add_up(const double* table, double (&columns)[4], Sums& sums) const {
        constexpr bool QUICK = sizeof(T) == sizeof(float);
        T column[4] = {};
        bool small = true;
        sums = {};
#pragma unroll 4
        for (int x = begin; x < end; ++x) {
            T row = 0;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const Count c = first + 32 * k < by ? __ldg(joint + static_cast<long long>(x) * by + first + 32 * k) : Count(0);
                sums.logs += QUICK ? __ldg(table + place_in_table(c, small)) : x_log_x(static_cast<double>(c));
                sums.excess += c != Count(0);
                row += static_cast<T>(c), column[k] += static_cast<T>(c);
            }
            row = warp_reduce(row, Sum{});
            if (threadIdx.x % 32 == 0) row_parts[static_cast<long long>(x) * strips + strip] = row;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) columns[k] = column[k];
        return !QUICK || __all_sync(FULL_WARP, small);
    }
};

// A large table, first: its cells, and the sums of each tile's rows and columns.
template <class Count>
__global__ void __launch_bounds__(256)
    table_parts(const Count* joint, const double* table, double* row_parts, double* column_parts, double* tile_logs,
                int* tile_cells, int bx, int by) {
    __shared__ double by_warp[8][STRIP];
    const int strips = (by + STRIP - 1) / STRIP, strip = blockIdx.x % strips, band = blockIdx.x / strips;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, begin = band * BAND + warp * 8;
    const Part<Count> part = {joint, row_parts, by, begin, min(bx, begin + 8), strip * STRIP + lane, strips, strip};
    Sums sums;
    double columns[4];
    if (!part.template add_up<float>(table, columns, sums)) part.template add_up<double>(table, columns, sums);
#pragma unroll
    for (int k = 0; k < 4; ++k) by_warp[warp][lane + 32 * k] = columns[k];
    const double logs = block_sum(sums.logs);
    const int occupied = block_reduce(sums.excess, Sum{}, 0);
    if (threadIdx.x == 0) tile_logs[blockIdx.x] = logs, tile_cells[blockIdx.x] = occupied;
    const int y = strip * STRIP + static_cast<int>(threadIdx.x);
    __syncthreads();
    if (threadIdx.x >= STRIP || y >= by) return;
    double sum = 0.0;
    for (int w = 0; w < 8; ++w) sum += by_warp[w][threadIdx.x];
    column_parts[static_cast<long long>(band) * by + y] = sum;
}

/// The sum over `count` values `apart` apart, by a warp.
__device__ inline double warp_total(const double* from, int count, long long apart) {
    double sum = 0.0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum += from[i * apart];
    return warp_reduce(sum, Sum{});
}

// Then the margins, a warp for each row and column, and the estimate.
extern "C" __global__ void __launch_bounds__(256)
    table_margins(const double* row_parts, const double* column_parts, const double* tile_logs, const int* tile_cells,
                  float* information, double* by_block, unsigned int* arrived, int bx, int by, int corrected, double unit) {
    const int strips = (by + STRIP - 1) / STRIP, bands = (bx + BAND - 1) / BAND, warps = gridDim.y * (blockDim.x / 32);
    const int warp = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32;
    Sums sums;
    for (long long i = warp; i < static_cast<long long>(bx) + by; i += warps) {
        const bool row = i < bx;
        const double margin = row ? warp_total(row_parts + i * strips, strips, 1) : warp_total(column_parts + i - bx, bands, by);
        if (threadIdx.x % 32 > 0) continue;
        sums.add_margin(margin, x_log_x(margin));
        if (row) sums.n += margin;
    }
    for (int tile = warp * 32 + threadIdx.x % 32; tile < strips * bands; tile += warps * 32)
        sums.logs += tile_logs[tile], sums.excess += tile_cells[tile];
    double all[3] = {sums.logs, sums.n, static_cast<double>(sums.excess)};
    if (!row_sums(all, by_block, arrived)) return;
    sums.logs = all[0], sums.n = all[1], sums.excess = static_cast<int>(all[2]);
    *information = estimate(sums, corrected, unit);
}
