#include "numbers/philox.cuh"
#include "sums/reduce.cuh"
#include "sums/scan.cuh"
#include "arrays/vector_load.cuh"

// Probabilities |psi|^2 of the basis states, and shots by the inverse of their cumulative sum. The sum is in double
// precision and in two levels: over parts of PART states, which a warp adds up as it passes, and within one part.

constexpr int PART = 256, SCANNED = 1024, EACH = PART / 32;

__device__ inline float born(float re, float im) { return fmaf(re, re, im * im); }

__device__ inline double born_double(float2 a) {
    return fma(static_cast<double>(a.x), static_cast<double>(a.x), static_cast<double>(a.y) * a.y);
}

constexpr int PAIRS = 2;  // of amplitudes a thread

// PAIRS pairs of amplitudes per thread, blockDim.x apart, all read before the first is stored.
extern "C" __global__ void __launch_bounds__(128) quantum_measurement(const float* psi, float* p, long long states) {
    const long long begin = 2 * (static_cast<long long>(blockIdx.x) * PAIRS * blockDim.x + threadIdx.x);
    float4 v[PAIRS];
#pragma unroll
    for (int k = 0; k < PAIRS; ++k)
        if (begin + 2 * k * blockDim.x + 2 <= states) v[k] = load4(psi + 2 * (begin + 2 * k * blockDim.x));
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        const long long at = begin + 2 * k * blockDim.x;
        if (at + 2 <= states)
            *reinterpret_cast<float2*>(p + at) = make_float2(born(v[k].x, v[k].y), born(v[k].z, v[k].w));
        else if (at < states) p[at] = born(psi[2 * at], psi[2 * at + 1]);
    }
}

// The same, with the sum of each warp's PART states.
extern "C" __global__ void __launch_bounds__(128)
    measurement_sums(const float* psi, float* p, double* sums, long long states) {
    const long long part = grid_thread() / 32;
    double own = 0.0;
#pragma unroll
    for (int k = 0; k < EACH / 2; ++k) {
        const long long at = part * PART + 64 * k + 2 * (threadIdx.x % 32);
        if (at + 2 <= states) {
            const float4 v = load4(psi + 2 * at);
            *reinterpret_cast<float2*>(p + at) = make_float2(born(v.x, v.y), born(v.z, v.w));
            own += born_double(make_float2(v.x, v.y)) + born_double(make_float2(v.z, v.w));
        } else if (at < states) {
            p[at] = born(psi[0], psi[1]);  // the only state
            own = born_double(make_float2(psi[0], psi[1]));
        }
    }
    own = warp_reduce(own, Sum{});
    if (threadIdx.x % 32 == 0 && part * PART < states) sums[part] = own;
}

// Running sums in place; blocks take SCANNED values each in the order of their tickets. `tiles` is zero before.
extern "C" __global__ void __launch_bounds__(SCANNED / 4)
    measurement_scan(double* sums, unsigned long long* tiles, long long count) {
    constexpr int WARPS = SCANNED / 4 / 32;
    __shared__ unsigned long long ticket;
    __shared__ double by_warp[WARPS], before_tile;
    if (threadIdx.x == 0) ticket = atomicAdd(tiles, 1ull);
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long at = static_cast<long long>(ticket) * SCANNED + 4 * threadIdx.x;
    double sum[4], last = 0.0;
#pragma unroll
    for (int k = 0; k < 4; ++k) sum[k] = last += at + k < count ? sums[at + k] : 0.0;
    for (int apart = 1; apart < 32; apart *= 2) {
        const double left = __shfl_up_sync(FULL_WARP, last, apart);
        if (lane >= apart) last += left;
    }
    if (lane == 31) by_warp[warp] = last;
    __syncthreads();
    if (warp == 0) {
        const double own = warp_reduce(lane < WARPS ? by_warp[lane] : 0.0, Sum{});
        const double before = sum_before(own, static_cast<int>(ticket), tiles + 1);
        if (lane == 0) before_tile = before;
    }
    __syncthreads();
    double before = before_tile + (last - sum[3]);
    for (int w = 0; w < warp; ++w) before += by_warp[w];
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (at + k < count) sums[at + k] = before + sum[k];
}

/// The bits of x that `mask` names, side by side.
__device__ inline long long gather_bits(long long x, unsigned long long mask) {
    long long bits = 0;
    for (int to = 0; mask != 0; mask &= mask - 1, ++to) bits |= (x >> (__ffsll(static_cast<long long>(mask)) - 1) & 1) << to;
    return bits;
}

constexpr int SHOTS = 8;  // of a warp at most

/// The first part whose running sum exceeds this lane's `drawn`, the last one if none does. Lanes SHOTS apart have the same
/// and try as many parts at a time.
__device__ inline long long find_part(const double* __restrict__ sums, long long parts, double drawn) {
    constexpr int TRIES = 32 / SHOTS;
    const int lane = threadIdx.x % 32;
    long long low = 0, high = parts - 1;
    while (__any_sync(FULL_WARP, low < high)) {
        const long long apart = (high - low + TRIES - 1) / TRIES, tried = low + (lane / SHOTS + 1) * apart - 1;
        const unsigned int all = __ballot_sync(FULL_WARP, tried >= high || __ldg(sums + tried) > drawn);
        const unsigned int beyond = all >> lane % SHOTS & 0x01010101u;
        const int first = beyond == 0 ? TRIES : (__ffs(static_cast<int>(beyond)) - 1) / SHOTS;
        if (low >= high) continue;
        high = min(high, low + (first + 1) * apart - 1);
        low = beyond == 0 ? high : low + first * apart;
    }
    return low;
}

/// The state of this warp's part at which the sum, `before` ahead of the part, first exceeds `drawn`; the last possible
/// one if none does, -1 if none is possible.
__device__ inline long long find_state(const float2* amplitude, long long part, long long states, double before,
                                       double drawn) {
    const int lane = threadIdx.x % 32;
    const long long first = part * PART + lane * EACH;
    double own[EACH], sum = 0.0;
#pragma unroll
    for (int j = 0; j < EACH; j += 2) {
        const bool both = first + j + 2 <= states;  // an odd number of states is one
        const float4 v = both ? __ldg(reinterpret_cast<const float4*>(amplitude + first + j)) : make_float4(0, 0, 0, 0);
        const float2 single = both || first + j >= states ? make_float2(v.x, v.y) : __ldg(amplitude + first + j);
        sum += own[j] = born_double(single), sum += own[j + 1] = born_double(make_float2(v.z, v.w));
    }
    double up_to = sum;
    for (int apart = 1; apart < 32; apart *= 2) {
        const double left = __shfl_up_sync(FULL_WARP, up_to, apart);
        if (lane >= apart) up_to += left;
    }
    before += up_to - sum;
    int hit = -1, possible = -1;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        before += own[j];
        if (!(own[j] > 0.0)) continue;
        possible = j;
        if (hit < 0 && before > drawn) hit = j;
    }
    const unsigned int hits = __ballot_sync(FULL_WARP, hit >= 0), there = __ballot_sync(FULL_WARP, possible >= 0);
    if (there == 0) return -1;
    const int chosen = hits != 0 ? __ffs(static_cast<int>(hits)) - 1 : 31 - __clz(static_cast<int>(there));
    return __shfl_sync(FULL_WARP, first + (hits != 0 ? hit : possible), chosen);
}

// A warp for at most SHOTS shots: it draws and finds the parts of all at once, then the state of one after the other. -1 where the
// state has no norm.
extern "C" __global__ void __launch_bounds__(256)
    measurement_shots(const float* __restrict__ psi, const double* __restrict__ sums, long long* shots, long long states,
                      long long parts, long long count, unsigned long long mask, unsigned long long seed) {
    const long long warps = grid_threads() / 32, first = grid_thread() / 32 * ((count + warps - 1) / warps);
    if (first >= count) return;
    const int lane = threadIdx.x % 32, own = lane % SHOTS;
    const int here = static_cast<int>(min((count + warps - 1) / warps, count - first));
    const double total = __ldg(sums + parts - 1);
    const double drawn = philox(static_cast<unsigned long long>(first + own), seed).uniform() * total;
    const long long part = find_part(sums, parts, drawn);
    const double before = part > 0 ? __ldg(sums + part - 1) : 0.0;
    long long state = -1;
#pragma unroll 2
    for (int k = 0; k < here; ++k) {
        const long long found = find_state(
            reinterpret_cast<const float2*>(psi), __shfl_sync(FULL_WARP, part, k), states,
            __shfl_sync(FULL_WARP, before, k), __shfl_sync(FULL_WARP, drawn, k)
        );
        if (k == own) state = found;
    }
    if (lane < here)
        shots[first + lane] = total > 0.0 && state >= 0 && isfinite(total) ? gather_bits(state, mask) : -1;
}

/// Bit i of x at the place of the i-th bit that `mask` has set.
__device__ inline long long spread_bits(long long x, unsigned long long mask) {
    unsigned long long bits = 0;
    for (; x != 0; x >>= 1, mask &= mask - 1)
        if (x & 1) bits |= mask & (0 - mask);
    return static_cast<long long>(bits);
}

// Probabilities of the outcomes of the qubits in `mask`, the others summed over. A warp reads 64 neighbouring amplitudes
// at a time, for one outcome of the measured qubits above these, and goes through gridDim.y's share of the values of the
// free ones; what the qubits below leave to be added is added across the lanes. sums[outcome][share]: the probabilities
// where there is one share.
template <class T>
__global__ void __launch_bounds__(256)
    marginal_sums(const float* __restrict__ psi, T* sums, long long states, unsigned long long mask) {
    const int lane = threadIdx.x % 32;
    const unsigned long long above = mask >> 6 << 6, free_bits = (states - 1 & ~63ll) & ~above;
    const long long upper = grid_thread() / 32, uppers = 1ll << __popcll(above), values = 1ll << __popcll(free_bits);
    if (upper >= uppers) return;
    const long long begin = values * blockIdx.y / gridDim.y, end = values * (blockIdx.y + 1) / gridDim.y;
    const long long place = spread_bits(upper, above) + 2 * lane;
    unsigned long long at = spread_bits(begin, free_bits);
    double even = 0.0, odd = 0.0;
    for (long long value = begin; value < end; value += 8) {
        float4 v[8];  // a place behind the end is read as the first one, so that no load waits for a branch
        float first[8] = {}, second[8] = {};
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const float* const from = psi + (value + k < end && place < states ? 2 * (place + static_cast<long long>(at)) : 0);
            at = ((at | ~free_bits) + 1) & free_bits;  // the next value: a carry runs over all other bits
            v[k] = states > 1 ? load4(from) : make_float4(from[0], from[1], 0.0f, 0.0f);
        }
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (value + k < end && place < states) first[k] = born(v[k].x, v[k].y), second[k] = born(v[k].z, v[k].w);
        even += ((first[0] + first[1]) + (first[2] + first[3])) + ((first[4] + first[5]) + (first[6] + first[7]));
        odd += ((second[0] + second[1]) + (second[2] + second[3])) + ((second[4] + second[5]) + (second[6] + second[7]));
    }
    if (!(mask & 1)) even += odd;
    for (int bit = 1; bit < 32; bit *= 2) {
        const double other_even = shuffle_xor(even, bit), other_odd = shuffle_xor(odd, bit);
        if (!(mask & 2 * bit)) even += other_even, odd += other_odd;
    }
    if (2 * lane & ~mask || place >= states) return;
    const long long outcome = gather_bits(place, mask);
    sums[outcome * gridDim.y + blockIdx.y] = static_cast<T>(even);
    if (mask & 1) sums[(outcome + 1) * gridDim.y + blockIdx.y] = static_cast<T>(odd);
}

// LANES threads add up the shares of an outcome.
template <int LANES>
__global__ void __launch_bounds__(256) marginal_totals(const double* sums, float* p, long long outcomes, int shares) {
    const long long outcome = grid_thread() / LANES;
    double sum = 0.0;
    for (int share = threadIdx.x % LANES; outcome < outcomes && share < shares; share += LANES)
        sum += sums[outcome * shares + share];
    if (LANES == 32) sum = warp_reduce(sum, Sum{});
    if (outcome < outcomes && threadIdx.x % LANES == 0) p[outcome] = static_cast<float>(sum);
}
