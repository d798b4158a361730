#pragma once

#include "entropy/logarithms.cuh"
#include "sums/row_sums.cuh"

// Mutual information of tables whose margins are given: n I = sum of c ln(c n / (m_x m_y)), n the sum of the m_x. Nothing is
// added up before, so that one reading does it; near independence, where c and m_x m_y / n are nearly the same, the
// logarithm is taken of their exact difference.

constexpr int ROWS_AHEAD = 4;  // whose loads a thread has on their way

/// Neighbours as one access, or a single one.
__device__ inline void load_given(const float* from, float (&to)[4]) {
    const float4 v = __ldg(reinterpret_cast<const float4*>(from));
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ inline void load_given(const float* from, float (&to)[1]) { to[0] = __ldg(from); }

/// A thread's neighbouring columns: their m_y / n, each as the sum of two floats.
template <int WIDTH>
struct GivenColumns {
    float share[WIDTH], rest[WIDTH];

    __device__ GivenColumns(const float* y_margin, double per_n) {
        float margin[WIDTH];
        load_given(y_margin, margin);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const double exact = margin[j] * per_n;
            share[j] = static_cast<float>(exact), rest[j] = static_cast<float>(exact - share[j]);
        }
    }
    /// c - m_x m_y / n of column j; `expected` becomes m_x m_y / n.
    __device__ float apart(float c, float x_margin, int j, float& expected) const {
        expected = x_margin * share[j];
        return (c - expected) - fmaf(x_margin, rest[j], fmaf(x_margin, share[j], -expected));
    }
};

/// Which cells a thread takes: WIDTH neighbouring columns, of some rows. Strips of columns times bands of rows are shared
/// out among the blocks of a table.
template <int WIDTH>
struct GivenPlace {
    int groups, wide, at_once, strips, bands;

    __device__ explicit GivenPlace(int by) {
        groups = (by + WIDTH - 1) / WIDTH, wide = min(static_cast<int>(blockDim.x), groups), at_once = blockDim.x / wide;
        strips = (groups + wide - 1) / wide, bands = max(1, static_cast<int>(gridDim.y) / strips);
    }

    /// f(first column, first row, end) for each part of this thread's.
    template <class F>
    __device__ void visit(int bx, F f) const {
        const int own = threadIdx.x / wide, batch = ROWS_AHEAD * at_once;
        const int height = ((bx + bands - 1) / bands + batch - 1) / batch * batch;
        for (int part = blockIdx.y; part < strips * bands; part += gridDim.y) {
            const int group = part % strips * wide + threadIdx.x % wide, begin = part / strips * height;
            if (own < at_once && group < groups) f(group * WIDTH, begin + own, min(bx, begin + height));
        }
    }
};

/// The sum of a table's terms, and occupied cells.
struct GivenSums {
    PartialSums<1> terms;
    int occupied = 0;
};

/// Terms of ordinary numbers, as they are.
struct QuickGiven {
    static constexpr float scale = 1.0f;
    OrdinaryTerms ordinary;

    __device__ float operator()(float c, float expected, float apart) {
        return ordinary(c, expected, BetterKnown{apart});
    }
};

/// Terms of any numbers, all times a power of two that brings n near 1, so that products of margins do not underflow.
struct CarefulGiven {
    float scale;

    __device__ explicit CarefulGiven(double n) : scale(1.0f) {
        if (n > 0.0 && n < 0x1p128) scale = static_cast<float>(exp2(-fmax(-126.0, fmin(126.0, floor(log2(n))))));
    }
    __device__ float operator()(float c, float expected, float apart) const {
        return relative_entropy(c, expected, apart);
    }
};

/// Adds the terms of COUNT rows of a thread, `apart` rows from each other, from `x` on: their loads first.
template <int COUNT, int WIDTH, class Term>
__device__ void add_given_rows(const float* from, const float* x_margin, int apart, int by,
                               const GivenColumns<WIDTH>& columns, GivenSums& sums, Term& term) {
    float cells[COUNT][WIDTH], margin[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        const float* const row = from + static_cast<long long>(k) * apart * by;
        if constexpr (WIDTH == 4) {
            const float4 v = load4_streamed(row);
            cells[k][0] = v.x, cells[k][1] = v.y, cells[k][2] = v.z, cells[k][3] = v.w;
        } else {
            cells[k][0] = __ldcs(row);
        }
        margin[k] = __ldg(x_margin + k * apart);
    }
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            float expected;
            const float c = cells[k][j] * term.scale, difference = columns.apart(c, margin[k] * term.scale, j, expected);
            sums.terms.add(0, j, term(c, expected, difference)), sums.occupied += cells[k][j] != 0.0f;
        }
}

/// Adds term(c, m_x m_y / n, their difference) for all cells of this thread, several rows' loads ahead.
template <int WIDTH, class Term>
__device__ void add_given(const float* joint, const float* x_margin, const float* y_margin, double per_n, int bx, int by,
                          GivenSums& sums, Term& term) {
    const GivenPlace<WIDTH> place(by);
    place.visit(bx, [&](int y, int first, int end) {
        const GivenColumns<WIDTH> columns(y_margin + y, per_n);
        const auto cell = [&](int x) { return joint + static_cast<long long>(x) * by + y; };
        const int apart = place.at_once;
        int x = first;
        for (; x + (ROWS_AHEAD - 1) * apart < end; x += ROWS_AHEAD * apart)
            add_given_rows<ROWS_AHEAD>(cell(x), x_margin + x, apart, by, columns, sums, term);
#pragma unroll 1
        for (; x < end; x += apart) add_given_rows<1>(cell(x), x_margin + x, apart, by, columns, sums, term);
    });
}

/// The estimate from n I and occupied cells - rows - columns: less than rounding makes of expected cells and of terms is
/// nothing.
__device__ inline float given_estimate(double total, double n, double excess, int corrected, double unit) {
    const bool rounding = total < 0x1p-46 * n && total > -0x1p-22 * n;
    return static_cast<float>(unit * ((rounding ? 0.0 : total) - (corrected ? (excess + 1.0) / 2.0 : 0.0)) / n);
}

// A block for each table, or several for a single one.
template <int WIDTH>
__global__ void __launch_bounds__(256, 3)
    given_margins(const float* joint, const float* x_margin, const float* y_margin, float* information, double* by_block,
                  unsigned int* arrived, int bx, int by, int corrected, double unit) {
    constexpr int AT_ONCE = 16;  // of the row margins, which every block adds up before anything else
    const long long table = blockIdx.x;
    joint += table * bx * by, x_margin += table * bx, y_margin += table * by;
    double n = 0.0;
    int there = 0;  // rows and columns that are not empty, counted by one block
    for (int first = threadIdx.x; first < bx; first += AT_ONCE * blockDim.x) {
        float margin[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
            margin[k] = __ldg(x_margin + min(first + k * static_cast<int>(blockDim.x), bx - 1));
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            const bool own = first + k * static_cast<int>(blockDim.x) < bx;
            n += own ? margin[k] : 0.0f, there += own && margin[k] != 0.0f;
        }
    }
    for (int y = threadIdx.x; corrected && y < by; y += blockDim.x) there += y_margin[y] != 0.0f;
    n = block_sum(n);
    const double per_n = 1.0 / n;
    GivenSums sums;
    const auto add = [&](auto& term) { add_given<WIDTH>(joint, x_margin, y_margin, per_n, bx, by, sums, term); };
    QuickGiven quick;
    add(quick);
    double terms[1];
    sums.terms.total(terms);
    if (quick.ordinary.odd) {
        sums = GivenSums();
        CarefulGiven careful(n);
        add(careful);
        sums.terms.total(terms);
        terms[0] /= careful.scale;
    }
    double all[2] = {terms[0], static_cast<double>(sums.occupied - (blockIdx.y == 0 ? there : 0))};
    if (!row_sums(all, by_block, arrived)) return;
    information[table] = given_estimate(all[0], n, all[1], corrected, unit);
}

constexpr int GIVEN_SIDE = 32, GIVEN_ROWS = GIVEN_SIDE / 4;  // of a square table that a warp keeps; rows of a lane

/// Terms of cells that are 0 or ordinary, which are looked at when all are through, where expected cells are 0 or between
/// 2^-100 and 2^100. A cell of 0 has some finite logarithm; one whose expected cell is 0 must be 0.
struct CellTerms {
    unsigned int most = 0, least = ~0u;  // bits of cells, and of cells other than 0 less one

    __device__ float operator()(float c, float expected, float apart) {
        const unsigned int bits = __float_as_uint(c);
        most = max(most, bits), least = min(least, bits - 1u);
        return c * ordinary_log_ratio(fmaxf(c, 0x1p-100f), expected, BetterKnown{apart});
    }
    __device__ bool sure() const { return most < 0x7e000000u && least >= 0x0d7fffffu; }  // up to 2^125, and from 2^-100
};

/// Whether products of two such margins keep in range.
__device__ inline bool moderate(float margin) { return margin == 0.0f || (margin > 0x1p-50f && margin < 0x1p50f); }

/// This lane's terms of a square table of any numbers.
__device__ __noinline__ double square_given_with_care(const float* joint, const float* x_margin, const float* y_margin,
                                                      double n) {
    const int lane = threadIdx.x % 32, y = lane % 8 * 4;
    CarefulGiven careful(n);
    GivenSums sums;
    const GivenColumns<4> columns(y_margin + y, 1.0 / n);
    for (int x = lane / 8; x < GIVEN_SIDE; x += 4)
        add_given_rows<1>(joint + x * GIVEN_SIDE + y, x_margin + x, 0, GIVEN_SIDE, columns, sums, careful);
    double terms[1];
    sums.terms.total(terms);
    return terms[0] / careful.scale;
}

// Tables of 32 rows and columns: a warp for each, which has it in registers. A lane takes four columns of every fourth row.
extern "C" __global__ void __launch_bounds__(64, 14)
    given_square(const float* joint, const float* x_margin, const float* y_margin, float* information, int tables,
                 int corrected, double unit) {
    const long long table = grid_thread() / 32;
    const int lane = threadIdx.x % 32;
    if (table >= tables) return;
    joint += table * GIVEN_SIDE * GIVEN_SIDE, x_margin += table * GIVEN_SIDE, y_margin += table * GIVEN_SIDE;
    float cell[GIVEN_ROWS][4];
#pragma unroll
    for (int k = 0; k < GIVEN_ROWS; ++k) {
        const float4 v = load4_streamed(joint + 4 * (lane + 32 * k));
        cell[k][0] = v.x, cell[k][1] = v.y, cell[k][2] = v.z, cell[k][3] = v.w;
    }
    const float own_margin = __ldg(x_margin + lane);
    const double n = warp_reduce(static_cast<double>(own_margin), Sum{});
    const GivenColumns<4> columns(y_margin + lane % 8 * 4, 1.0 / n);
    const auto each_cell = [&](auto f) {
#pragma unroll
        for (int k = 0; k < GIVEN_ROWS; ++k) {
            const float margin = __shfl_sync(FULL_WARP, own_margin, 4 * k + lane / 8);
#pragma unroll
            for (int j = 0; j < 4; ++j) f(cell[k][j], margin, j);
        }
    };
    bool odd = !moderate(own_margin), empty = own_margin == 0.0f;
#pragma unroll
    for (int j = 0; j < 4; ++j) odd |= !moderate(columns.share[j]), empty |= columns.share[j] == 0.0f;
    if (__any_sync(FULL_WARP, empty))
        each_cell([&](float c, float margin, int j) { odd |= c != 0.0f && margin * columns.share[j] == 0.0f; });
    CellTerms term;
    float sum[4] = {};
    each_cell([&](float c, float margin, int j) {
        float expected;
        const float apart = columns.apart(c, margin, j, expected);
        sum[j] += term(c, expected, apart);
    });
    int excess = 0;
    if (corrected) {
        each_cell([&](float c, float, int) { excess += c != 0.0f; });
        excess = warp_reduce(excess - (own_margin != 0.0f) - (__ldg(y_margin + lane) != 0.0f), Sum{});
    }
    double total = (static_cast<double>(sum[0]) + sum[1]) + (static_cast<double>(sum[2]) + sum[3]);
    if (__any_sync(FULL_WARP, odd || !term.sure())) total = square_given_with_care(joint, x_margin, y_margin, n);
    total = warp_reduce(total, Sum{});
    if (lane == 0) information[table] = given_estimate(total, n, excess, corrected, unit);
}
