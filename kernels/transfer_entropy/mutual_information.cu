#include "entropy/count_logs.cuh"
#include "entropy/given_margins.cuh"
#include "sums/row_sums.cuh"
#include "entropy/square_probabilities.cuh"
#include "entropy/table_cells.cuh"

// n I = sum of c ln c over cells - the same over rows and over columns + n ln n, of tables [bx][by] of counts or
// probabilities: one reading serves all four sums. They are in double precision, since near independence nearly all of
// them cancels. Where all cells are whole numbers below 1024 their logarithms are tabulated and sums of floats exact.

constexpr int STRIP = 128, BAND = 256;  // columns and rows of a tile of a large table

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

constexpr int SIDE = 32, IN_TURN = 8;  // of a square table; tables of a warp, whose estimates its lanes make together

/// The sums of a square table, added up in T, in every lane; false where T was float and a cell has no place in the table.
/// A lane takes four columns of every fourth row.
template <class T, class Count>
__device__ bool add_up_square(const Count* from, bool aligned, const double* table, int corrected, Sums& sums) {
    Cells<Count> cells[SIDE / 4];
    Columns<T> columns;
    T row[SIDE / 4];
#pragma unroll
    for (int k = 0; k < SIDE / 4; ++k) cells[k] = Cells<Count>::of(from + 4 * (threadIdx.x % 32 + 32 * k), aligned);
#pragma unroll
    for (int k = 0; k < SIDE / 4; ++k) row[k] = columns.add(cells[k], TableInMemory{table});
    if (!__all_sync(FULL_WARP, columns.small)) return false;
    const T across = sums_by_lane<8, 1>(row), down = sums_by_lane<4, 8>(columns.column);
    sums = {};
    sums.logs = columns.log_sum();
    sums.add_margin(across, margin_log(across, table)), sums.add_margin(down, margin_log(down, table));
    sums.logs = warp_reduce(sums.logs, Sum{}), sums.n = warp_reduce(across, Sum{});
    if (corrected) sums.excess = warp_reduce(sums.excess + columns.occupied, Sum{});
    return true;
}

template <class Count>
__device__ __noinline__ Sums square_with_care(const Count* from, bool aligned, const double* table, int corrected) {
    Sums sums;
    add_up_square<double>(from, aligned, table, corrected, sums);
    return sums;
}

// Tables of 32 rows and columns: a warp takes eight, each in registers.
template <class Count>
__global__ void __launch_bounds__(256, 3)
    square_tables(const Count* joint, float* information, const double* table, int tables, int corrected, double unit) {
    const bool aligned = misalignment(reinterpret_cast<const float*>(joint)) == 0;
    const long long first = grid_thread() / 32 * IN_TURN;
    const int lane = threadIdx.x % 32;
    Sums own;
    for (int t = 0; t < IN_TURN && first + t < tables; ++t) {
        const Count* const from = joint + (first + t) * SIDE * SIDE;
        Sums sums;
        if (!add_up_square<float>(from, aligned, table, corrected, sums))
            sums = square_with_care(from, aligned, table, corrected);
        if (lane == t) own = sums;
    }
    if (lane < IN_TURN && first + lane < tables) information[first + lane] = estimate(own, corrected, unit);
}

// Blocks of an SM: with more, numbers of a table leave the registers, as they do with so many on other architectures.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 100 == 9
constexpr int SQUARES = 14;
#else
constexpr int SQUARES = 10;
#endif

// The same of probabilities, whose logarithms are in no table: a warp for each, which has it in registers.
extern "C" __global__ void __launch_bounds__(64, SQUARES)
    square_probabilities(const float* joint, float* information, int tables, int corrected, double unit) {
    const long long own = grid_thread() / 32;
    if (own >= tables) return;
    const bool aligned = misalignment(joint) == 0;
    const int lane = threadIdx.x % 32;
    joint += own * SIDE * SIDE;
    float cell[GIVEN_ROWS][4];
    load_square(joint, aligned, cell);
    const SquareSums sums = square_sums(cell, corrected);
    float found;
    if (sums.sure) {
        const double total = sums.total < 0x1p-46 * sums.n ? 0.0 : sums.total;  // less is what rounding makes
        found = static_cast<float>(unit * (total - (corrected ? (sums.excess + 1.0) / 2.0 : 0.0)) / sums.n);
    } else {
        found = estimate(square_with_care(joint, aligned, nullptr, corrected), corrected, unit);
    }
    if (lane == 0) information[own] = found;
}

/// This warp's part of a tile of a large table: four columns a lane, side by side, and up to 32 rows, four at a time.
template <class Count>
struct Part {
    static constexpr int ROWS = 32, AHEAD = 4;
    const Count* joint;
    double* row_parts;  // [strip, row]
    int bx, by, begin, first, strip;

    __device__ Cells<Count> load(int x, bool in_fours) const {
        if (x < bx && in_fours && first < by) return Cells<Count>::of(joint + static_cast<long long>(x) * by + first, true);
        Cells<Count> cells = {};
        for (int k = 0; k < 4 && x < bx; ++k)
            if (first + k < by) cells.value[k] = __ldg(joint + static_cast<long long>(x) * by + first + k);
        return cells;
    }

    /// Adds its cells up, in T, and writes the sums of its rows; calls `prepare` once the first are on their way. False
    /// where T was float and a cell had no place in the table.
    template <class T, class Prepare>
    __device__ bool add_up(const double* table, Columns<T>& columns, Prepare prepare) const {
        const bool in_fours = by % 4 == 0 && misalignment(reinterpret_cast<const float*>(joint)) == 0;
        const int lane = threadIdx.x % 32;
        columns = {};
        for (int x = begin; x == begin || x < min(begin + ROWS, bx); x += AHEAD) {
            Cells<Count> ahead[AHEAD];
            T row[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) ahead[k] = load(x + k, in_fours);
            if (x == begin) prepare();
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) row[k] = columns.add(ahead[k], TableOnChip{table});
            T sum = sums_by_lane<AHEAD, 8>(row);
            sum += shuffle_xor(sum, 1), sum += shuffle_xor(sum, 2), sum += shuffle_xor(sum, 4);
            if (lane % 8 == 0 && x + lane / 8 < bx) row_parts[static_cast<long long>(strip) * bx + x + lane / 8] = sum;
        }
        return __all_sync(FULL_WARP, columns.small);
    }
};

// A large table, first: its cells, and the sums of each tile's rows and columns. Each block makes the table of logarithms
// while it waits for its first cells.
template <class Count>
__global__ void __launch_bounds__(256, 4)
    table_parts(const Count* joint, double* row_parts, double* column_parts, double* tile_logs,
                int* tile_cells, int bx, int by) {
    __shared__ double by_warp[8][STRIP], table[TABULATED];
    const auto make_table = [&] {
        for (int c = threadIdx.x; c < TABULATED; c += blockDim.x) table[c] = x_log_x(static_cast<double>(c));
        __syncthreads();
    };
    const int strips = (by + STRIP - 1) / STRIP, strip = blockIdx.x % strips, band = blockIdx.x / strips;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int begin = band * BAND + warp * Part<Count>::ROWS;
    const Part<Count> part = {joint, row_parts, bx, by, begin, strip * STRIP + 4 * lane, strip};
    double logs;
    int occupied;
    const auto keep = [&](const auto& columns) {
#pragma unroll
        for (int k = 0; k < 4; ++k) by_warp[warp][4 * lane + k] = columns.column[k];
        logs = columns.log_sum(), occupied = columns.occupied;
    };
    Columns<float> quick;
    if (part.add_up(table, quick, make_table)) {
        keep(quick);
    } else {
        Columns<double> careful;
        part.add_up(table, careful, [] {});
        keep(careful);
    }
    logs = block_sum(logs), occupied = block_reduce(occupied, Sum{}, 0);
    if (threadIdx.x == 0) tile_logs[blockIdx.x] = logs, tile_cells[blockIdx.x] = occupied;
    const int y = strip * STRIP + static_cast<int>(threadIdx.x);
    if (threadIdx.x >= STRIP || y >= by) return;
    double sum = 0.0;
    for (int w = 0; w < 8; ++w) sum += by_warp[w][threadIdx.x];
    column_parts[static_cast<long long>(band) * by + y] = sum;
}

// Then the margins and the estimate. A block takes 32 rows and columns at a time, each of its warps some of their parts.
extern "C" __global__ void __launch_bounds__(256)
    table_margins(const double* row_parts, const double* column_parts, const double* tile_logs, const int* tile_cells,
                  float* information, double* by_block, unsigned int* arrived, int bx, int by, int corrected, double unit) {
    __shared__ double by_warp[8][32];
    const int strips = (by + STRIP - 1) / STRIP, bands = (bx + BAND - 1) / BAND, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long lines = static_cast<long long>(bx) + by;
    Sums sums;
    for (long long first = 32ll * blockIdx.y; first < lines; first += 32ll * gridDim.y) {
        const long long line = first + lane;
        const bool row = line < bx;
        const double* const from = row ? row_parts + line : column_parts + line - bx;
        const int parts = line >= lines ? 0 : row ? strips : bands, apart = row ? bx : by;
        double margin = 0.0;
#pragma unroll 8
        for (int k = warp; k < parts; k += 8) margin += __ldcg(from + static_cast<long long>(k) * apart);
        by_warp[warp][lane] = margin;
        __syncthreads();
        if (warp == 0 && line < lines) {
            margin = 0.0;
#pragma unroll
            for (int k = 0; k < 8; ++k) margin += by_warp[k][lane];
            sums.add_margin(margin, x_log_x(margin));
            if (row) sums.n += margin;
        }
        __syncthreads();
    }
    for (int tile = blockIdx.y * 256 + threadIdx.x; tile < strips * bands; tile += gridDim.y * 256)
        sums.logs += tile_logs[tile], sums.excess += tile_cells[tile];
    double all[3] = {sums.logs, sums.n, static_cast<double>(sums.excess)};
    if (!row_sums(all, by_block, arrived)) return;
    sums.logs = all[0], sums.n = all[1], sums.excess = static_cast<int>(all[2]);
    *information = estimate(sums, corrected, unit);
}
