#pragma once

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
    static constexpr int AT_ONCE = W > 8 ? 2 : 1;  // where few warps fit, so that a pixel waits for the last one's words
    static constexpr int TOUCHED = W + COUNT - 1;  // pixels of one row that some window holds
    static constexpr unsigned int ONE = BITS == 8 && W > 8 ? 1 : 4;  // where there is room, counts are offsets in a table
    static constexpr unsigned int TOP = 0x80808080u, OFFSETS = 0xfcfcfcfcu;

    /// A count of one for every window that holds the v-th touched pixel.
    __device__ static constexpr unsigned int members(int v) {
        unsigned int ones = 0;
        for (int i = 0; i < COUNT; ++i) ones |= i <= v && v < i + W ? ONE << BITS * i : 0u;
        return ones;
    }

    /// c log2 c as a whole number of 2^-FRACTION.
    __device__ static unsigned int times_log2(int c) {
        return c == 0 ? 0 : static_cast<unsigned int>(rint(c * log2(double(c)) * (1 << FRACTION)));
    }

    /// Four times the count of window i: the offset of its place in a table. All 8 x 8 pixels alike are 256, which is 0 and
    /// carries a one to where the next count's offset has none of its own.
    __device__ static unsigned int offset(unsigned int word, int i) {
        if constexpr (BITS == 16) return __byte_perm(word, 0, 0x4410 + 0x22 * i);
        return ONE == 4 ? __byte_perm(word & OFFSETS, 0, 0x4440 + i) : __byte_perm(word, 0, 0x4440 + i) * 4;
    }

    /// Sums and differences in which no count disturbs the next: 256 of 16 x 16 equal pixels is 0 in 8 bits, and back.
    __device__ static unsigned int plus(unsigned int word, unsigned int ones) {
        return W == 16 ? ((word & ~TOP) + ones) ^ (word & TOP) : word + ones;
    }
    __device__ static unsigned int minus(unsigned int word, unsigned int ones) {
        return W == 16 ? ((word | TOP) - ones) ^ (~word & TOP) : word - ones;
    }
};

/// How codes and tables are read: through the cache for what no thread writes, or as they lie in shared memory.
struct Cached {
    template <class T>
    __device__ T operator()(const T* from) const { return __ldg(from); }
};
struct Direct {
    template <class T>
    __device__ T operator()(const T* from) const { return *from; }
};

/// The codes of the pixels that one thread's windows touch in a row.
template <int W>
struct Codes {
    static constexpr int COUNT = Windows<W>::COUNT, WORDS = (Windows<W>::TOUCHED + COUNT - 1) / COUNT * COUNT / 2;
    unsigned int word[WORDS];

    template <class Read = Cached>
    __device__ explicit Codes(const unsigned short* at, Read read = {}) {
#pragma unroll
        for (int i = 0; i < WORDS; i += COUNT / 2) {
            if constexpr (COUNT == 4) {
                const uint2 pair = read(reinterpret_cast<const uint2*>(at + 2 * i));
                word[i] = pair.x, word[i + 1] = pair.y;
            } else {
                word[i] = read(reinterpret_cast<const unsigned int*>(at + 2 * i));
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
    unsigned int none, sum[In::COUNT];  // `none` is the code of no pixel, above that of all levels

    __device__ Histogram(char* counters, const unsigned int* gain, unsigned int none = NONE)
        : counters(counters), gain(gain), none(none), sum{} {
#pragma unroll 8
        for (unsigned int code = 0; code <= none; code += STEP) word(code) = 0;
    }

    __device__ unsigned int& word(unsigned int code) const { return *reinterpret_cast<unsigned int*>(counters + code); }

    __device__ unsigned int gain_at(unsigned int word, int i) const {
        return *reinterpret_cast<const unsigned int*>(reinterpret_cast<const char*>(gain) + In::offset(word, i));
    }

    __device__ void add_gains(unsigned int before, unsigned int ones) {
#pragma unroll
        for (int i = 0; i < In::COUNT; ++i)
            if (ones >> In::BITS * i & In::ONE) sum[i] += gain_at(before, i);
    }

    /// Two pixels at a time, as each waits for a read: where their levels are one, the second finds what the first left.
    __device__ void enter(const Codes<W>& row) {
#pragma unroll
        for (int v = 0; v < In::TOUCHED; v += 2) {
            const bool two = v + 1 < In::TOUCHED;
            const unsigned int ones = In::members(v), before = word(row[v]), second = two ? word(row[v + 1]) : 0;
            const unsigned int after = In::plus(before, ones);
            word(row[v]) = after;
            add_gains(before, ones);
            if (!two) continue;
            const unsigned int found = row[v + 1] == row[v] ? after : second;
            word(row[v + 1]) = In::plus(found, In::members(v + 1));
            add_gains(found, In::members(v + 1));
        }
    }

    /// One row leaves, another enters. Where a pixel's level stays, both words are the same one and keep their value. Of
    /// AT_ONCE pixels all words are read first; the second's are what the first left where the levels are one.
    __device__ void slide(const Codes<W>& leaving, const Codes<W>& entering) {
#pragma unroll
        for (int first = 0; first < In::TOUCHED; first += In::AT_ONCE) {
            unsigned int full[In::AT_ONCE], before[In::AT_ONCE], after = 0, entered = 0;
#pragma unroll
            for (int v = first; v < first + In::AT_ONCE && v < In::TOUCHED; ++v)
                full[v - first] = word(leaving[v]), before[v - first] = word(entering[v]);
#pragma unroll
            for (int v = first; v < first + In::AT_ONCE && v < In::TOUCHED; ++v) {
                unsigned int out = full[v - first], in = before[v - first];
                if (v > first) {
                    const unsigned int left = leaving[first], came = entering[first];
                    out = leaving[v] == left ? after : leaving[v] == came ? entered : out;
                    in = entering[v] == left ? after : entering[v] == came ? entered : in;
                }
                const unsigned int ones = In::members(v), change = leaving[v] == entering[v] ? 0 : ones;
                word(leaving[v]) = after = In::minus(out, change);
                word(entering[v]) = entered = In::plus(in, change);
#pragma unroll
                for (int i = 0; i < In::COUNT; ++i)
                    if (ones >> In::BITS * i & In::ONE) sum[i] += gain_at(in, i) - gain_at(after, i);
            }
        }
    }

    /// The entropies in units of 1/`unit` bits; 0 where the window holds no pixel. table[c] is c log2 c.
    template <class Read = Cached>
    __device__ void entropies(const unsigned int* table, float unit, float (&result)[In::COUNT], Read read = {}) const {
        const unsigned int without = word(none);
        unit *= 1.0f / (1 << In::FRACTION);
#pragma unroll
        for (int i = 0; i < In::COUNT; ++i) {
            if (without == 0) {
                result[i] = (read(table + In::AREA) - sum[i]) * (unit / In::AREA);
            } else {
                const unsigned int outside = In::offset(without, i) / 4, n = In::AREA - outside;
                const unsigned int bits = read(table + n) - (sum[i] - read(table + outside));
                result[i] = n > 0 ? bits * unit / n : 0.0f;
            }
        }
    }
};
