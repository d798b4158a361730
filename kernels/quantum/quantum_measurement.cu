#include "philox.cuh"
#include "reduce.cuh"
#include "scan.cuh"
#include "vector_load.cuh"

// Probabilities |psi|^2 of the basis states, and shots by the inverse of their cumulative sum. The sum is in double
// precision and in two levels: over chunks of PART states, which a block adds up as it passes, and within one chunk.

constexpr int PART = 1024, SCANNED = 256;

__device__ inline float born(float re, float im) { return fmaf(re, re, im * im); }

__device__ inline double born_double(float2 a) {
    return fma(static_cast<double>(a.x), static_cast<double>(a.x), static_cast<double>(a.y) * a.y);
}

// Two amplitudes per thread.
extern "C" __global__ void __launch_bounds__(256) quantum_measurement(const float* psi, float* p, long long states) {
    const long long at = 2 * grid_thread();
    if (at + 2 <= states) {
        const float4 v = load4(psi + 2 * at);
        *reinterpret_cast<float2*>(p + at) = make_float2(born(v.x, v.y), born(v.z, v.w));
    } else if (at < states) {
        p[at] = born(psi[2 * at], psi[2 * at + 1]);
    }
}

// The same, with the sum of each block's PART states.
extern "C" __global__ void __launch_bounds__(256)
    measurement_sums(const float* psi, float* p, double* sums, long long states) {
    const float2* const amplitude = reinterpret_cast<const float2*>(psi);
    double own = 0.0;
#pragma unroll
    for (int k = 0; k < PART / 256; ++k) {
        const long long at = static_cast<long long>(blockIdx.x) * PART + k * 256 + threadIdx.x;
        if (at >= states) continue;
        const float2 a = amplitude[at];
        p[at] = born(a.x, a.y);
        own += born_double(a);
    }
    own = block_sum(own);
    if (threadIdx.x == 0) sums[blockIdx.x] = own;
}

// Running sums in place; blocks take SCANNED values each in the order of their tickets. `tiles` is zero before.
extern "C" __global__ void __launch_bounds__(SCANNED)
    measurement_scan(double* sums, unsigned long long* tiles, long long count) {
    __shared__ unsigned long long ticket;
    __shared__ double by_warp[SCANNED / 32], before_tile;
    if (threadIdx.x == 0) ticket = atomicAdd(tiles, 1ull);
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long at = static_cast<long long>(ticket) * SCANNED + threadIdx.x;
    double sum = at < count ? sums[at] : 0.0;
    for (int apart = 1; apart < 32; apart *= 2) {
        const double left = __shfl_up_sync(FULL_WARP, sum, apart);
        if (lane >= apart) sum += left;
    }
    if (lane == 31) by_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        const double own = warp_reduce(lane < SCANNED / 32 ? by_warp[lane] : 0.0, Sum{});
        const double before = sum_before(own, static_cast<int>(ticket), tiles + 1);
        if (lane == 0) before_tile = before;
    }
    __syncthreads();
    double before = before_tile;
    for (int w = 0; w < warp; ++w) before += by_warp[w];
    if (at < count) sums[at] = before + sum;
}

/// The bits of x that `mask` names, side by side.
__device__ inline long long gather_bits(long long x, unsigned long long mask) {
    long long bits = 0;
    for (int to = 0; mask != 0; mask &= mask - 1, ++to) bits |= (x >> (__ffsll(static_cast<long long>(mask)) - 1) & 1) << to;
    return bits;
}

/// The first chunk whose running sum exceeds `drawn`; the last one if none does.
__device__ inline long long find_part(const double* __restrict__ sums, long long parts, double drawn) {
    long long low = 0, high = parts - 1;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if (__ldg(sums + middle) > drawn) high = middle;
        else low = middle + 1;
    }
    return low;
}

// A warp for each shot; -1 where the state has no norm.
extern "C" __global__ void __launch_bounds__(256)
    measurement_shots(const float* __restrict__ psi, const double* __restrict__ sums, long long* shots, long long states,
                      long long parts, long long count, unsigned long long mask, unsigned long long seed) {
    const float2* const amplitude = reinterpret_cast<const float2*>(psi);
    const long long shot = grid_thread() / 32;
    const int lane = threadIdx.x % 32;
    if (shot >= count) return;
    const double total = __ldg(sums + parts - 1);
    const double drawn = philox(static_cast<unsigned long long>(shot), seed).uniform() * total;
    const long long part = find_part(sums, parts, drawn);
    double before = part > 0 ? __ldg(sums + part - 1) : 0.0;
    long long found = -1;
    for (long long at = part * PART + lane; at - lane < min(states, (part + 1) * PART); at += 32) {
        const double own = at < states ? born_double(__ldg(amplitude + at)) : 0.0;
        double sum = own;
        for (int apart = 1; apart < 32; apart *= 2) {
            const double left = __shfl_up_sync(FULL_WARP, sum, apart);
            if (lane >= apart) sum += left;
        }
        const unsigned int possible = __ballot_sync(FULL_WARP, own > 0.0);
        const unsigned int beyond = __ballot_sync(FULL_WARP, before + sum > drawn) & possible;
        if (possible != 0) found = at - lane + (beyond != 0 ? __ffs(static_cast<int>(beyond)) - 1 : 31 - __clz(possible));
        if (beyond != 0) break;
        before += __shfl_sync(FULL_WARP, sum, 31);
    }
    if (lane == 0) shots[shot] = total > 0.0 && found >= 0 && isfinite(total) ? gather_bits(found, mask) : -1;
}
