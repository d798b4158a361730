#pragma once

#include <cooperative_groups.h>

#include "reduce.cuh"
#include "scan.cuh"
#include "vector_load.cuh"

// 0-dimensional persistence of an image's superlevel sets by the elder rule. As the threshold falls, a component is born
// at a local maximum and dies at the pixel where it meets one that is older. Equal values enter in the order of pixels.

/// An image with its pixels in the order in which they enter; a NaN never does.
template <bool EIGHT>
struct Filtration {
    const float* x;
    int rows, cols;

    /// Larger for what enters earlier; 0 for NaN. The pixel stands in the lower half.
    __device__ unsigned long long key(int pixel) const {
        const float value = x[pixel] + 0.0f;
        const unsigned int bits = __float_as_uint(value);
        if (isnan(value)) return 0;
        return static_cast<unsigned long long>(bits >> 31 ? ~bits : bits | 0x80000000u) << 32 | ~static_cast<unsigned int>(pixel);
    }
    __device__ static int pixel_of(unsigned long long key) { return static_cast<int>(~static_cast<unsigned int>(key)); }

    /// f(neighbour) for all that enter before the pixel of that key.
    template <class F>
    __device__ void earlier(unsigned long long own, F f) const {
        const int pixel = pixel_of(own), row = pixel / cols, column = pixel % cols;
        for (int i = max(0, row - 1); i <= min(rows - 1, row + 1); ++i)
            for (int j = max(0, column - 1); j <= min(cols - 1, column + 1); ++j)
                if ((EIGHT || i == row || j == column) && key(i * cols + j) > own) f(i * cols + j);
    }

    /// The oldest of the components that meet at the pixel of that key, by the key of its maximum.
    __device__ unsigned long long oldest(unsigned long long own, const int* component) const {
        unsigned long long best = key(component[pixel_of(own)]);
        earlier(own, [&](int other) { best = max(best, key(component[other])); });
        return best;
    }
};

__device__ inline int last_of(const int* up, int pixel) {
    while (up[pixel] != pixel) pixel = up[pixel];
    return pixel;
}

// death[p] of a local maximum p is the value at which its component dies: -inf where it never does, its own value if that
// is less than `least` away. Any other pixel dies as it enters. A round finds the first meeting of every component, and
// lets those die that meet an older one there; the last component to meet anything is the oldest of them. Cooperative.
template <bool EIGHT>
__global__ void __launch_bounds__(256)
    tda_persistence(const float* x, float* death, int* component, int* up, unsigned long long* meeting, int* died, int rows,
                    int cols, float least) {
    const auto grid = cooperative_groups::this_grid();
    const Filtration<EIGHT> image = {x, rows, cols};
    const int pixels = rows * cols, first = static_cast<int>(grid_thread()), step = static_cast<int>(grid_threads());
    for (int p = first; p < pixels; p += step) {
        const unsigned long long own = image.key(p);
        unsigned long long highest = own;
        if (own != 0) image.earlier(own, [&](int other) { highest = max(highest, image.key(other)); });
        up[p] = own == 0 ? p : image.pixel_of(highest);
        death[p] = own != 0 && highest == own ? -infinity() : x[p];
        meeting[p] = 0;
    }
    if (first == 0) died[0] = 0;
    grid.sync();
    for (int p = first; p < pixels; p += step) component[p] = last_of(up, p);
    grid.sync();
    for (int round = 0;; round = (round + 1) % 3) {
        for (int p = first; p < pixels; p += step) {
            const unsigned long long own = image.key(p);
            bool several = false;
            if (own != 0) image.earlier(own, [&](int other) { several |= component[other] != component[p]; });
            if (!several) continue;
            atomicMax(meeting + component[p], own);
            image.earlier(own, [&](int other) { atomicMax(meeting + component[other], own); });
        }
        if (first == 0) died[(round + 1) % 3] = 0;
        grid.sync();
        for (int p = first; p < pixels; p += step) {
            if (component[p] != p || meeting[p] == 0) continue;
            const int older = image.pixel_of(image.oldest(meeting[p], component));
            const float value = x[image.pixel_of(meeting[p])];
            meeting[p] = 0;
            if (older == p) continue;
            up[p] = older;
            death[p] = x[p] - value < least ? x[p] : value;
            atomicExch(died + round, 1);
        }
        grid.sync();
        if (died[round] == 0) break;
        for (int p = first; p < pixels; p += step) component[p] = last_of(up, component[p]);
        grid.sync();
    }
}

constexpr int PAIR_ROUNDS = 8, PAIR_TILE = 256 * PAIR_ROUNDS;  // pixels of a warp, 32 at a time; of a block

// The pairs (x, death) of a length above 0, in the order of pixels, and how many they are. Blocks take tiles in the order of
// their tickets and look back for the number of pairs before; `states` is 0 before, and holds a ticket and a word a tile.
extern "C" __global__ void __launch_bounds__(256)
    tda_pairs(const float* x, const float* death, float2* diagram, int* count, unsigned long long* states, long long pixels) {
    __shared__ int ticket, by_warp[8], before_tile;
    if (threadIdx.x == 0) ticket = static_cast<int>(atomicAdd(states, 1ull));
    __syncthreads();
    const int tile = ticket, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long first = static_cast<long long>(tile) * PAIR_TILE + warp * 32 * PAIR_ROUNDS + lane;
    float born[PAIR_ROUNDS], dead[PAIR_ROUNDS];
    unsigned int pairs[PAIR_ROUNDS];
    int own = 0;
#pragma unroll
    for (int k = 0; k < PAIR_ROUNDS; ++k) {
        const long long at = first + 32 * k;
        born[k] = at < pixels ? x[at] : 0.0f, dead[k] = at < pixels ? death[at] : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < PAIR_ROUNDS; ++k) {
        pairs[k] = __ballot_sync(FULL_WARP, dead[k] < born[k]);
        own += __popc(pairs[k]);
    }
    if (lane == 0) by_warp[warp] = own;
    __syncthreads();
    if (warp == 0) {
        int all = 0;
        for (int w = 0; w < 8; ++w) all += by_warp[w];
        const int before = static_cast<int>(sum_before(all, tile, states + 1));
        if (lane == 0) before_tile = before;
        if (lane == 0 && (tile + 1ll) * PAIR_TILE >= pixels) *count = before + all;
    }
    __syncthreads();
    int next = before_tile;
    for (int w = 0; w < warp; ++w) next += by_warp[w];
#pragma unroll
    for (int k = 0; k < PAIR_ROUNDS; ++k) {
        if (pairs[k] >> lane & 1) diagram[next + __popc(pairs[k] & (1u << lane) - 1)] = make_float2(born[k], dead[k]);
        next += __popc(pairs[k]);
    }
}

// What of the diagram is not a pair becomes NaN.
extern "C" __global__ void __launch_bounds__(256) tda_no_pairs(float2* diagram, const int* count, int most) {
    const float none = __int_as_float(0x7fffffff);
    for (long long i = *count + grid_thread(); i < most; i += grid_threads()) diagram[i] = make_float2(none, none);
}
