// Entropy of the grey levels in a window around every pixel, H = log2 n - (1/n) sum of c log2 c over the level counts c.
// c log2 c is a whole number of 2^-FRACTION, so that sliding a window adds and subtracts without drift.

constexpr int STEP = 128;             // bytes from one level's counters to the next: one word per lane of a warp
constexpr unsigned int NONE = 256 * STEP;  // stands for a pixel outside the image, or a NaN

/// The level of x: floor(bins (x - lo) / (hi - lo)) in double precision, which only estimates close to a whole number need.
__device__ inline int level_of(float x, float lo, float hi, int bins) {
    const float estimate = (x - lo) * (bins / (hi - lo));
    float level = floorf(estimate);
    if (estimate > -1.0f && estimate < 257.0f && fabsf(estimate - rintf(estimate)) < 0x1p-12f)
        level = static_cast<float>(floor(bins * (static_cast<double>(x) - lo) / (static_cast<double>(hi) - lo)));
    return static_cast<int>(fminf(fmaxf(level, 0.0f), bins - 1.0f));
}

/// Windows of side W: how the counts of neighbouring ones, that share most of their pixels, stand side by side in a word.
template <int W>
struct Windows {
    static_assert(W >= 1 && W <= 64, "sums of c log2 c fit 32 bits");
    static constexpr int BITS = W <= 16 ? 8 : 16, COUNT = 32 / BITS;
    static constexpr int FRACTION = W <= 16 ? 20 : W <= 32 ? 18 : 16;
    static constexpr int AREA = W * W, TABLE = (AREA + 32) / 32 * 32;
    static constexpr int TOUCHED = W + COUNT - 1;  // pixels of one row that some window holds
    static constexpr unsigned int ONE = BITS == 8 ? 1 : 4;  // where there is room, counts are kept as offsets in the table
    static constexpr unsigned int TOP = 0x80808080u;

    /// A count of one for every window that holds the v-th touched pixel.
    __device__ static constexpr unsigned int members(int v) {
        unsigned int ones = 0;
        for (int i = 0; i < COUNT; ++i) ones |= i <= v && v < i + W ? ONE << BITS * i : 0u;
        return ones;
    }

    /// Four times the count of window i: the offset of its place in a table.
    __device__ static unsigned int offset(unsigned int word, int i) {
        return BITS == 8 ? __byte_perm(word, 0, 0x4440 + i) * 4 : __byte_perm(word, 0, 0x4410 + 0x22 * i);
    }

    /// Sums and differences in which no count disturbs the next: 256 of 16 x 16 equal pixels is 0 in 8 bits, and back.
    __device__ static unsigned int plus(unsigned int word, unsigned int ones) {
        return BITS == 8 ? ((word & ~TOP) + ones) ^ (word & TOP) : word + ones;
    }
    __device__ static unsigned int minus(unsigned int word, unsigned int ones) {
        return BITS == 8 ? ((word | TOP) - ones) ^ (~word & TOP) : word - ones;
    }
};

/// The codes of the pixels that one thread's windows touch in a row.
template <int W>
struct Codes {
    static constexpr int COUNT = Windows<W>::COUNT, WORDS = (Windows<W>::TOUCHED + COUNT - 1) / COUNT * COUNT / 2;
    unsigned int word[WORDS];

    __device__ explicit Codes(const unsigned short* at) {
#pragma unroll
        for (int i = 0; i < WORDS; i += COUNT / 2) {
            if constexpr (COUNT == 4) {
                const uint2 pair = __ldg(reinterpret_cast<const uint2*>(at + 2 * i));
                word[i] = pair.x, word[i + 1] = pair.y;
            } else {
                word[i] = __ldg(reinterpret_cast<const unsigned int*>(at + 2 * i));
            }
        }
    }

    __device__ unsigned int operator[](int v) const { return v % 2 ? word[v / 2] >> 16 : word[v / 2] & 0xffffu; }
};

/// The counts and sums of one thread's windows. Each lane has its own bank of shared memory.
template <int W>
struct Histogram {
    using In = Windows<W>;
    char* counters;            // the word of code c stands c bytes further
    const unsigned int* gain;  // gain[c]: what the sum gains when a count rises from c to c + 1
    unsigned int sum[In::COUNT];

    __device__ Histogram(char* counters, const unsigned int* gain) : counters(counters), gain(gain), sum{} {
#pragma unroll 8
        for (unsigned int code = 0; code <= NONE; code += STEP) word(code) = 0;
    }

    __device__ unsigned int& word(unsigned int code) const { return *reinterpret_cast<unsigned int*>(counters + code); }

    __device__ unsigned int gain_at(unsigned int word, int i) const {
        return *reinterpret_cast<const unsigned int*>(reinterpret_cast<const char*>(gain) + In::offset(word, i));
    }

    __device__ void enter(const Codes<W>& row) {
#pragma unroll
        for (int v = 0; v < In::TOUCHED; ++v) {
            const unsigned int ones = In::members(v), before = word(row[v]);
            word(row[v]) = In::plus(before, ones);
#pragma unroll
            for (int i = 0; i < In::COUNT; ++i)
                if (ones >> In::BITS * i & In::ONE) sum[i] += gain_at(before, i);
        }
    }

    /// One row leaves, another enters. Where a pixel's level stays, both words are the same one and keep their value.
    __device__ void slide(const Codes<W>& leaving, const Codes<W>& entering) {
#pragma unroll
        for (int v = 0; v < In::TOUCHED; ++v) {
            const unsigned int ones = In::members(v), change = leaving[v] == entering[v] ? 0 : ones;
            const unsigned int full = word(leaving[v]), before = word(entering[v]), after = In::minus(full, change);
            word(leaving[v]) = after;
            word(entering[v]) = In::plus(before, change);
#pragma unroll
            for (int i = 0; i < In::COUNT; ++i)
                if (ones >> In::BITS * i & In::ONE) sum[i] += gain_at(before, i) - gain_at(after, i);
        }
    }

    /// The entropies in units of 1/`unit` bits; 0 where the window holds no pixel. table[c] is c log2 c.
    __device__ void entropies(const unsigned int* table, float unit, float (&result)[In::COUNT]) const {
        const unsigned int without = word(NONE);
        unit *= 1.0f / (1 << In::FRACTION);
#pragma unroll
        for (int i = 0; i < In::COUNT; ++i) {
            if (without == 0) {
                result[i] = (__ldg(table + In::AREA) - sum[i]) * (unit / In::AREA);
            } else {
                const unsigned int none = In::offset(without, i) / 4, n = In::AREA - none;
                const unsigned int bits = __ldg(table + n) - (sum[i] - __ldg(table + none));
                result[i] = n > 0 ? bits * unit / n : 0.0f;
            }
        }
    }
};

// Codes of the image's levels, with W/2 rows and columns of no pixel around it, and the table of c log2 c.
template <int W, class Pixel>
__global__ void __launch_bounds__(256) pixel_entropy_codes(const Pixel* __restrict__ x, unsigned short* __restrict__ codes,
                                                           unsigned int* __restrict__ table, float lo, float hi,
                                                           int bins, int rows, int cols, int pitch) {
    if (blockIdx.x == 0 && blockIdx.y == 0)
        for (int c = threadIdx.y * blockDim.x + threadIdx.x; c <= W * W; c += blockDim.x * blockDim.y)
            table[c] = c == 0 ? 0 : static_cast<unsigned int>(rint(c * log2(double(c)) * (1 << Windows<W>::FRACTION)));
    const int col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (col >= pitch) return;
    for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows + W - 1; row += gridDim.y * blockDim.y) {
        const int i = row - W / 2;
        unsigned short code[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int j = col + k - W / 2;
            const bool inside = i >= 0 && i < rows && j >= 0 && j < cols;
            const float value = inside ? static_cast<float>(__ldg(x + static_cast<long long>(i) * cols + j)) : 0.0f;
            code[k] = inside && !isnan(value) ? level_of(value, lo, hi, bins) * STEP : NONE;
        }
        *reinterpret_cast<ushort4*>(codes + static_cast<long long>(row) * pitch + col) =
            make_ushort4(code[0], code[1], code[2], code[3]);
    }
}

// Each warp slides the windows of 32 COUNT columns down one strip of rows; any grid of at least one warp per such columns.
template <int W>
__global__ void __launch_bounds__(224, 1) pixel_entropy(const unsigned short* __restrict__ codes,
                                                        const unsigned int* __restrict__ table,
                                                        float* __restrict__ entropy, float unit, int rows, int cols,
                                                        int pitch) {
    using In = Windows<W>;
    extern __shared__ unsigned int shared[];
    for (int c = threadIdx.x; c <= In::AREA; c += blockDim.x) shared[c] = c < In::AREA ? table[c + 1] - table[c] : 0;
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int across = (cols + 32 * In::COUNT - 1) / (32 * In::COUNT), strips = gridDim.x * warps / across;
    const int task = blockIdx.x * warps + warp, height = (rows + strips - 1) / strips;
    const int col = In::COUNT * (task % across * 32 + lane);
    int row = task / across * height;
    const int end = min(rows, row + height);
    if (task >= across * strips || col >= cols || row >= end) return;
    Histogram<W> histogram(reinterpret_cast<char*>(shared + In::TABLE) + warp * (NONE + STEP) + lane * 4, shared);
    const unsigned short* at = codes + static_cast<long long>(row) * pitch + col;
    const unsigned short* below = at + static_cast<long long>(W) * pitch;
#pragma unroll 1
    for (int k = 0; k < W; ++k) histogram.enter(Codes<W>(at + static_cast<long long>(k) * pitch));
    float* to = entropy + static_cast<long long>(row) * cols + col;
    Codes<W> leaving(at), entering(row + 1 < end ? below : at);
    while (true) {
        float result[In::COUNT];
        histogram.entropies(table, unit, result);
#pragma unroll
        for (int i = 0; i < In::COUNT; ++i)
            if (col + i < cols) __stcs(to + i, result[i]);
        if (++row == end) return;
        to += cols, at += pitch, below += pitch;
        const Codes<W> out = leaving, in = entering;
        if (row + 1 < end) leaving = Codes<W>(at), entering = Codes<W>(below);
        histogram.slide(out, in);
    }
}

// One thread per pixel, its histogram counted afresh in local memory; any window.
template <class Pixel>
__global__ void pixel_entropy_naive(const Pixel* __restrict__ x, float* __restrict__ entropy, float lo, float hi,
                                    int bins, int window, float unit, int rows, int cols) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= rows || j >= cols) return;
    const int top = max(0, i - window / 2), bottom = min(rows, i - window / 2 + window);
    const int left = max(0, j - window / 2), right = min(cols, j - window / 2 + window);
    int counts[256];
    for (int b = 0; b < bins; ++b) counts[b] = 0;
    int n = 0;
    for (int r = top; r < bottom; ++r)
        for (int c = left; c < right; ++c) {
            const float value = static_cast<float>(__ldg(x + static_cast<long long>(r) * cols + c));
            if (isnan(value)) continue;
            ++counts[level_of(value, lo, hi, bins)];
            ++n;
        }
    double total = 0.0;
    for (int b = 0; b < bins; ++b)
        if (counts[b] > 1) total += counts[b] * static_cast<double>(log2f(counts[b]));
    const float bits = n > 0 ? static_cast<float>(log2f(n) - total / n) : 0.0f;
    entropy[static_cast<long long>(i) * cols + j] = bits * unit;
}
