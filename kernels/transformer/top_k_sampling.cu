#include "numbers/philox.cuh"
#include "sums/reduce.cuh"
#include "arrays/vector_load.cuh"

// The k largest logits of a row, in order, their probabilities, and one of them drawn. One block walks the row once and
// keeps candidates in shared memory: those that pass a bar, which k of the first logits reach. When they are too many,
// all but the k best so far are dropped, and the k-th becomes the bar.

constexpr int THREADS = 256, QUADS = 4, HELD = 4 * QUADS;  // logits that a thread holds at a time

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

/// What a block shares: entries in `held`, `count` of them in use.
struct Shared {
    unsigned long long* held;
    int* count;

    __device__ Shared(unsigned long long* memory, int capacity)
        : held(memory), count(reinterpret_cast<int*>(memory + capacity)) {}
};

/// A number that exactly k entries reach, by bisection; reaching(number) says how many do. 0 if there are not so many
/// entries. All threads call it.
template <class Reaching>
__device__ unsigned long long find_bar(int k, Reaching reaching) {
    unsigned long long low = 0, high = ~0ull;
    while (high - low > 1) {
        const unsigned long long middle = low + (high - low) / 2;
        const int count = reaching(middle);
        if (count == k) return middle;
        if (count > k) low = middle;
        else high = middle;
    }
    return low;
}

/// Drops all but the k best of at most an entry a thread, by counting the better ones of each; returns the bar.
__device__ inline unsigned long long keep_best_of_few(const Shared& s, int count, int k) {
    __shared__ unsigned long long bar;
    const int i = threadIdx.x;
    const unsigned long long own = i < count ? s.held[i] : 0;
    int better = 0;
    if (i / 32 * 32 < count) {
#pragma unroll 4
        for (int j = 0; j < count; ++j) better += s.held[j] > own;
    }
    __syncthreads();
    if (i == 0) *s.count = min(count, k);
    if (i == 0 && count < k) bar = 0;
    if (i < count && better < k) s.held[better] = own;
    if (i < count && better == k - 1) bar = own;
    __syncthreads();
    return bar;
}

/// Drops all but the k best entries; returns the bar.
__device__ inline unsigned long long keep_best(const Shared& s, int k) {
    const int count = *s.count;
    if (count <= THREADS) return keep_best_of_few(s, count, k);
    const auto reaching = [&](unsigned long long number) {
        int own = 0;
        for (int i = threadIdx.x; i < count; i += THREADS) own += s.held[i] >= number;
        return block_reduce(own, Sum{}, 0);
    };
    const unsigned long long bar = find_bar(k, reaching);
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

/// The logits that a thread holds at a time: four neighbours each, THREADS groups apart.
struct Logits {
    float z[HELD];

    __device__ static int place(int begin, int j) { return begin + 4 * (j / 4 * THREADS + static_cast<int>(threadIdx.x)) + j % 4; }
    template <bool ALIGNED>
    __device__ void load(const float* row, int begin, int vocabulary) {
#pragma unroll
        for (int j = 0; j < HELD; j += ALIGNED ? 4 : 1) {
            const bool there = place(begin, j) < vocabulary;
            if constexpr (ALIGNED) {
                float4 v = make_float4(-infinity(), -infinity(), -infinity(), -infinity());
                if (there) v = load4_streamed(row + place(begin, j));
                z[j] = v.x, z[j + 1] = v.y, z[j + 2] = v.z, z[j + 3] = v.w;
            } else {
                z[j] = there ? __ldcs(row + place(begin, j)) : -infinity();
            }
        }
    }
    /// That of number j, by four choices: an index that is not known beforehand would put all into memory.
    __device__ float at(int j) const {
        float part[HELD / 2];
#pragma unroll
        for (int i = 0; i < HELD / 2; ++i) part[i] = j & HELD / 2 ? z[i + HELD / 2] : z[i];
#pragma unroll
        for (int half = HELD / 4; half > 0; half /= 2)
#pragma unroll
            for (int i = 0; i < half; ++i) part[i] = j & half ? part[i + half] : part[i];
        return part[0];
    }
    /// A NaN is none.
    __device__ float largest() const {
        float most = z[0];
#pragma unroll
        for (int j = 1; j < HELD; ++j) most = fmaxf(most, z[j]);
        return most;
    }
};

/// What k of the threads' two best logits reach, less one; 0 where those are fewer than k.
__device__ inline unsigned long long first_bar(const Logits& logits, int vocabulary, int k) {
    if (k > 2 * THREADS) return 0;
    unsigned long long best = 0, second = 0;
#pragma unroll
    for (int j = 0; j < HELD; ++j) {
        if (Logits::place(0, j) >= vocabulary) continue;
        const unsigned long long entry = Entry::of(logits.z[j], Logits::place(0, j));
        second = max(second, min(best, entry));
        best = max(best, entry);
    }
    const auto reaching = [&](unsigned long long number) {
        return __syncthreads_count(best >= number) + __syncthreads_count(second >= number);
    };
    const unsigned long long reached = find_bar(k, reaching);
    return reached > 0 ? reached - 1 : 0;
}

/// Walks the row and leaves its k best entries, unsorted, in shared memory. The next logits are under way meanwhile. The bar
/// is raised each time that as much again of the row has been seen, so that candidates get rarer.
template <bool ALIGNED>
__device__ void select(const Shared& s, const float* row, int vocabulary, int k, int capacity) {
    Logits own, next;
    next.load<ALIGNED>(row, 0, vocabulary);
    unsigned long long bar = first_bar(next, vocabulary, k);
    float least = bar_logit(bar);
    for (int begin = 0; begin < vocabulary; begin += HELD * THREADS) {
        own = next;
        if (begin + HELD * THREADS < vocabulary) next.load<ALIGNED>(row, begin + HELD * THREADS, vocabulary);
        unsigned int pending = 0;
        if (!(own.largest() < least)) {
#pragma unroll
            for (int j = 0; j < HELD; ++j) pending |= own.z[j] < least ? 0u : 1u << j;
        }
        while (true) {
            for (; pending != 0; pending &= pending - 1) {
                const int j = __ffs(static_cast<int>(pending)) - 1, index = Logits::place(begin, j);
                const unsigned long long entry = index < vocabulary ? Entry::of(own.at(j), index) : 0;
                if (entry <= bar) continue;
                const int place = atomicAdd(s.count, 1);
                if (place >= capacity) break;
                s.held[place] = entry;
            }
            if (!__syncthreads_or(pending != 0)) break;
            if (threadIdx.x == 0) *s.count = capacity;
            __syncthreads();
            bar = keep_best(s, k);
            least = bar_logit(bar);
        }
        const int turn = begin / (HELD * THREADS) + 1;
        if ((turn & (turn - 1)) > 0) continue;
        const bool many = *s.count >= 2 * k;
        __syncthreads();
        if (!many) continue;
        bar = keep_best(s, k);
        least = bar_logit(bar);
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

// One block per row; ALIGNED says that rows begin on 16-byte boundaries. In shared memory are `capacity` entries, their
// number, and 2 k doubles.
template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 4)
    top_k_sampling(const float* logits, int* index, float* p, int* token, int vocabulary, int k, int capacity,
                   double temperature, double top_p, unsigned long long seed) {
    extern __shared__ unsigned long long memory[];
    const Shared s(memory, capacity);
    const long long row = blockIdx.x;
    if (threadIdx.x == 0) *s.count = 0;
    __syncthreads();
    select<ALIGNED>(s, logits + row * vocabulary, vocabulary, k, capacity);
    int size = 1;
    while (size < k) size *= 2;
    for (int i = k + threadIdx.x; i < size; i += THREADS) s.held[i] = 0;
    sort_entries(s.held, size);
    for (int j = threadIdx.x; j < k; j += THREADS) index[row * k + j] = Entry::index(s.held[j]);
    double* const weight = reinterpret_cast<double*>(memory + capacity + 1);
    finish(s, weight, weight + k, p + row * k, token + row, k, temperature, top_p, seed);
}
