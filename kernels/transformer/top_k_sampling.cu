#include "philox.cuh"
#include "reduce.cuh"
#include "vector_load.cuh"

// The k largest logits of a row, in order, their probabilities, and one of them drawn. One block walks the row once and
// keeps candidates in shared memory; when they are too many, all but the k best so far are dropped, and the k-th becomes
// the bar that later ones must pass.

constexpr int THREADS = 512, QUADS = 4, HELD = 4 * QUADS;  // logits that a thread holds at a time

/// Logit and index in one number, never 0: the larger one is the better. -0 equals 0, a NaN counts as -inf, ties go to
/// the lower index.
struct Entry {
    static constexpr unsigned int LEAST = 0x007fffffu;  // the key of -inf

    __device__ static unsigned long long of(float z, int index) {
        const unsigned int bits = __float_as_uint(z + 0.0f);
        const unsigned int key = isnan(z) ? LEAST : bits >> 31 ? ~bits : bits | 0x80000000u;
        return static_cast<unsigned long long>(key) << 32 | ~static_cast<unsigned int>(index);
    }
    __device__ static int index(unsigned long long entry) { return static_cast<int>(~static_cast<unsigned int>(entry)); }
    __device__ static float logit(unsigned long long entry) {
        const unsigned int key = static_cast<unsigned int>(entry >> 32);
        return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
    }
};

/// What a block shares: `capacity` entries in `held`, `count` of them in use.
struct Shared {
    unsigned long long* held;
    unsigned int* bins;  // 256
    unsigned long long* prefix;
    int *count, *wanted;

    __device__ explicit Shared(unsigned long long* memory, int capacity)
        : held(memory), bins(reinterpret_cast<unsigned int*>(memory + capacity)), prefix(memory + capacity + 128),
          count(reinterpret_cast<int*>(memory + capacity + 129)), wanted(count + 1) {}
};

/// Finds in which of the 256 bins, from the top, the wanted-th entry lies; lowers `wanted` by those above it. One warp.
/// True in all lanes if all entries of that bin are wanted.
__device__ inline bool choose_bin(const Shared& s, int shift) {
    const int lane = threadIdx.x % 32, top = 255 - 8 * lane;
    int own = 0;
    for (int j = 0; j < 8; ++j) own += s.bins[top - j];
    int up_to = own;
    for (int apart = 1; apart < 32; apart *= 2) {
        const int before = __shfl_up_sync(FULL_WARP, up_to, apart);
        if (lane >= apart) up_to += before;
    }
    const int wanted = *s.wanted;
    const bool here = up_to >= wanted && up_to - own < wanted;
    int above = up_to - own, bin = top;
    if (here)
        for (; above + static_cast<int>(s.bins[bin]) < wanted; --bin) above += s.bins[bin];
    const bool all = here && above + static_cast<int>(s.bins[bin]) == wanted;
    __syncwarp();
    if (here) *s.prefix |= static_cast<unsigned long long>(bin) << shift, *s.wanted = wanted - above;
    return __any_sync(FULL_WARP, all);
}

/// The k-th best of the entries, by radix: eight bits at a time from the top, until a bin is wanted whole. What is
/// returned has zeros below, so that all entries from it on are the k best. All threads call it.
__device__ inline unsigned long long find_bar(const Shared& s, int k) {
    if (threadIdx.x == 0) *s.prefix = 0, *s.wanted = k;
    for (int shift = 56;; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += THREADS) s.bins[i] = 0;
        __syncthreads();
        const unsigned long long prefix = *s.prefix;
        for (int i = threadIdx.x; i < *s.count; i += THREADS)
            if (shift == 56 || (s.held[i] ^ prefix) >> (shift + 8) == 0) atomicAdd(s.bins + (s.held[i] >> shift & 255), 1u);
        __syncthreads();
        const bool done = threadIdx.x < 32 && choose_bin(s, shift);
        if (__syncthreads_or(done) || shift == 0) return *s.prefix;
    }
}

/// Drops all but the k best entries; returns the bar.
__device__ inline unsigned long long keep_best(const Shared& s, int k) {
    const unsigned long long bar = find_bar(s, k);
    const int count = *s.count;
    __syncthreads();
    if (threadIdx.x == 0) *s.count = 0;
    for (int begin = 0; begin < count; begin += THREADS) {
        const int i = begin + threadIdx.x;
        const unsigned long long entry = i < count ? s.held[i] : 0;
        __syncthreads();
        if (entry >= bar && entry != 0) s.held[atomicAdd(s.count, 1)] = entry;
    }
    __syncthreads();
    return bar;
}

/// Sorts `size` entries, a power of two, the best first.
__device__ inline void sort_entries(unsigned long long* entry, int size) {
    for (int run = 2; run <= size; run *= 2)
        for (int apart = run / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < size / 2; i += THREADS) {
                const int low = 2 * i - (i & (apart - 1)), high = low + apart;
                const unsigned long long a = entry[low], b = entry[high];
                if ((a < b) == ((low & run) == 0)) entry[low] = b, entry[high] = a;
            }
        }
    __syncthreads();
}

/// The bar as a float below which no logit can pass; NaN, which stops nothing, while worse than any number will do.
__device__ inline float bar_logit(unsigned long long bar) {
    return bar >> 32 <= Entry::LEAST ? __int_as_float(0x7fffffff) : Entry::logit(bar);
}

/// Walks the row and leaves its k best entries, unsorted, in shared memory.
__device__ inline void select(const Shared& s, const float* row, int vocabulary, int k, int capacity, bool aligned) {
    unsigned long long bar = 0;
    float least = __int_as_float(0x7fffffff);
    for (int begin = 0; begin < vocabulary; begin += HELD * THREADS) {
        float z[HELD];
        int first[QUADS];
        unsigned int pending = 0;
#pragma unroll
        for (int q = 0; q < QUADS; ++q) {
            first[q] = begin + 4 * (q * THREADS + static_cast<int>(threadIdx.x));
            float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (aligned && first[q] < vocabulary) v = load4_streamed(row + first[q]);
            z[4 * q] = v.x, z[4 * q + 1] = v.y, z[4 * q + 2] = v.z, z[4 * q + 3] = v.w;
        }
#pragma unroll
        for (int j = 0; j < HELD; ++j) {
            const int index = first[j / 4] + j % 4;
            if (!aligned && index < vocabulary) z[j] = __ldcs(row + index);
            if (!(z[j] < least) && index < vocabulary) pending |= 1u << j;
        }
        while (true) {
#pragma unroll
            for (int j = 0; j < HELD; ++j) {
                if (!(pending >> j & 1)) continue;
                const unsigned long long entry = Entry::of(z[j], first[j / 4] + j % 4);
                const int place = entry > bar ? atomicAdd(s.count, 1) : 0;
                if (entry > bar && place >= capacity) continue;
                if (entry > bar) s.held[place] = entry;
                pending &= ~(1u << j);
            }
            if (!__syncthreads_or(pending != 0)) break;
            if (threadIdx.x == 0) *s.count = capacity;
            __syncthreads();
            bar = keep_best(s, k);
            least = bar_logit(bar);
        }
    }
    __syncthreads();
    if (*s.count > k) keep_best(s, k);
}

/// sums[j] = weight[0] + ... + weight[j]. One warp.
__device__ inline void running_sums(const double* weight, double* sums, int k) {
    const int lane = threadIdx.x % 32;
    double before = 0.0;
    for (int begin = 0; begin < k; begin += 32) {
        double sum = begin + lane < k ? weight[begin + lane] : 0.0;
        for (int apart = 1; apart < 32; apart *= 2) {
            const double left = __shfl_up_sync(FULL_WARP, sum, apart);
            if (lane >= apart) sum += left;
        }
        if (begin + lane < k) sums[begin + lane] = before + sum;
        before += __shfl_sync(FULL_WARP, sum, 31);
    }
}

/// How many of the first k running sums `holds` is true for. All threads call it.
template <class Holds>
__device__ int count_sums(const double* sums, int k, Holds holds) {
    int count = 0;
    for (int begin = 0; begin < k; begin += THREADS) {
        const int j = begin + static_cast<int>(threadIdx.x);
        count += __syncthreads_count(j < k && holds(sums[j]));
    }
    return count;
}

/// Probabilities of the sorted entries, and the draw. Of equal shares of the random number line each entry has as much
/// as its probability; with top_p only the fewest best entries of at least that share take part.
__device__ inline void finish(const Shared& s, double* weight, double* sums, float* p, int* token, int k,
                              double temperature, double top_p, unsigned long long seed) {
    const float best = Entry::logit(s.held[0]);
    const bool none = best == -infinity();
    for (int j = threadIdx.x; j < k; j += THREADS) {
        const float z = Entry::logit(s.held[j]);
        weight[j] = none ? 0.0 : z == best ? 1.0 : exp((static_cast<double>(z) - best) / temperature);
    }
    __syncthreads();
    if (threadIdx.x < 32) running_sums(weight, sums, k);
    __syncthreads();
    const double share = top_p * sums[k - 1];
    const int kept = min(k, 1 + count_sums(sums, k, [&](double sum) { return sum < share; }));
    const double all = none ? 1.0 : sums[kept - 1];
    const double drawn = philox(blockIdx.x, seed).uniform() * all;
    const int chosen = count_sums(sums, kept - 1, [&](double sum) { return sum <= drawn; });
    for (int j = threadIdx.x; j < k; j += THREADS) p[j] = j < kept ? static_cast<float>(weight[j] / all) : 0.0f;
    if (threadIdx.x == 0) *token = none ? -1 : Entry::index(s.held[chosen]);
}

// One block per row. In shared memory are `capacity` entries, 130 words of counters, and 2 k doubles.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    top_k_sampling(const float* logits, int* index, float* p, int* token, int vocabulary, int k, int capacity,
                   double temperature, double top_p, unsigned long long seed) {
    extern __shared__ unsigned long long memory[];
    const Shared s(memory, capacity);
    const long long row = blockIdx.x;
    if (threadIdx.x == 0) *s.count = 0;
    __syncthreads();
    select(s, logits + row * vocabulary, vocabulary, k, capacity, vocabulary % 4 == 0);
    int size = 1;
    while (size < k) size *= 2;
    for (int i = k + threadIdx.x; i < size; i += THREADS) s.held[i] = 0;
    sort_entries(s.held, size);
    for (int j = threadIdx.x; j < k; j += THREADS) index[row * k + j] = Entry::index(s.held[j]);
    double* const weight = reinterpret_cast<double*>(memory + capacity + 130);
    finish(s, weight, weight + k, p + row * k, token + row, k, temperature, top_p, seed);
}
