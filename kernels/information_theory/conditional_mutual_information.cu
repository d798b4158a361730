#include "knn_distances_chebyshev.cu"
#include "neighbours/ksg.cuh"
#include "numbers/philox.cuh"

// Surrogates that keep what z tells of x (Runge 2018): in `orders` of each surrogate, point i gets the x of one of the
// points nearest to it in z, itself among them, that no other has yet, or of any of them when all are taken. Points take
// turns in steps of `step`, from a drawn one on. A warp for each surrogate; a candidate a lane; a bit for each point taken.
// Whose turn comes is known beforehand: candidates and draws of several turns are on their way before the first is taken.
constexpr int AHEAD = 8;

extern "C" __global__ void __launch_bounds__(32)
    local_orders(const int* nearest, int* orders, int n, int nearby, int step, unsigned long long seed) {
    extern __shared__ unsigned int taken[];
    const int lane = threadIdx.x, surrogate = blockIdx.x, others = nearby - 1;
    const unsigned long long key = seed + surrogate;
    for (int i = lane; i < (n + 31) / 32; i += 32) taken[i] = 0;
    __syncwarp();
    const unsigned int drawn = philox(static_cast<unsigned long long>(n) * nearby, key).word[0];
    int next = static_cast<int>(drawn % static_cast<unsigned int>(n));
    for (int first = 0; first < n; first += AHEAD) {
        int point[AHEAD], candidate[AHEAD];
        unsigned int draw[AHEAD];
#pragma unroll
        for (int t = 0; t < AHEAD; ++t) {
            const long long at = next;
            point[t] = next;
            candidate[t] = lane > 0 && lane < nearby ? nearest[at * others + lane - 1] : next;
            draw[t] = philox(static_cast<unsigned long long>(at) * nearby + lane, key).word[0] >> 1;
            next = next + step < n ? next + step : next + step - n;
        }
#pragma unroll
        for (int t = 0; t < AHEAD; ++t) {
            if (first + t >= n) break;
            const int own = candidate[t] < 0 ? point[t] : candidate[t];
            const unsigned int rank = lane < nearby ? draw[t] | (taken[own / 32] >> own % 32 & 1u) << 31 : ~0u;
            __syncwarp();
            const unsigned int best = __reduce_min_sync(FULL_WARP, rank);
            const unsigned int at_best = __ballot_sync(FULL_WARP, rank == best);
            const int chosen = __shfl_sync(FULL_WARP, own, __ffs(static_cast<int>(at_best)) - 1);
            if (lane == 0) {
                orders[static_cast<long long>(surrogate) * n + point[t]] = chosen;
                taken[chosen / 32] |= 1u << chosen % 32;
            }
            __syncwarp();
        }
    }
}
