#pragma once

#include <cooperative_groups.h>

#include "sums/reduce.cuh"
#include "sums/scan.cuh"
#include "arrays/vector_load.cuh"

// 0-dimensional persistence of an image's superlevel sets by the elder rule. As the threshold falls, a component is born
// at a local maximum and dies at the pixel where it meets one that is older. Equal values enter in the order of pixels.

/// The eight pixels around one, clockwise from the one above.
struct Ring {
    static constexpr unsigned int SIDES = 0x55;

    __device__ static constexpr int down(int bit) { return (0x01a90u >> 2 * bit & 3) - 1; }
    __device__ static constexpr int right(int bit) { return (0x001a9u >> 2 * bit & 3) - 1; }
    __device__ static unsigned int turned(unsigned int bits, int by) { return (bits << by | bits >> (8 - by)) & 0xff; }

    /// One of each group of neighbours among `bits` that are connected around the pixel without it; none where that is one
    /// group all around.
    template <bool EIGHT>
    __device__ static unsigned int groups(unsigned int bits) {
        const unsigned int sides = bits & SIDES, corners = bits & ~SIDES;
        if (!EIGHT) return sides & ~(turned(sides, 2) & turned(corners, 1));
        return (sides & ~turned(sides, 2)) | (corners & ~turned(sides, 1) & ~turned(sides, 7));
    }
};

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

    /// Which of the eight around a pixel enter before it, in the order of Ring; `highest` becomes the first of all that it
    /// touches to enter, itself included.
    __device__ unsigned int before(int pixel, int& highest) const {
        constexpr int ORDER[8] = {7, 0, 1, 6, 2, 5, 4, 3};  // by index: of equal values the first enters first
        const int row = pixel / cols, column = pixel % cols;
        const float value = x[pixel];
        unsigned int bits = 0;
        float best = value;
        highest = pixel;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int bit = ORDER[i], down = Ring::down(bit), right = Ring::right(bit);
            const int other_row = row + down, other_column = column + right;
            if (other_row < 0 || other_row >= rows || other_column < 0 || other_column >= cols) continue;
            const int other = pixel + down * cols + right;
            const float above = x[other];
            if (!(i < 4 ? above >= value : above > value)) continue;
            bits |= 1u << bit;
            if ((EIGHT || bit % 2 == 0) && (highest == pixel || above > best)) best = above, highest = other;
        }
        return bits;
    }
};

/// The last of a chain, to which others may be adding.
__device__ inline int last_of(const int* up, int pixel) {
    const volatile int* const now = up;
    for (int next = now[pixel]; next != pixel; next = now[pixel]) pixel = next;
    return pixel;
}

/// Pixels of a warp's share of an image: at its front those at which components may meet, at its back their maxima.
struct WarpPixels {
    int* kept;
    int begin, size, front, back;

    __device__ WarpPixels(int* list, int pixels) : front(0), back(0) {
        const int warps = static_cast<int>(grid_threads() / 32), warp = static_cast<int>(grid_thread() / 32);
        const int share = ((pixels + warps - 1) / warps + 31) / 32 * 32;
        begin = static_cast<int>(min(static_cast<long long>(warp) * share, static_cast<long long>(pixels)));
        size = min(share, pixels - begin), kept = list + begin;
    }
    __device__ static int rank(unsigned int lanes) { return __popc(lanes & ((1u << threadIdx.x % 32) - 1)); }
    /// Keeps `word` at the front where `keep`. All lanes of the warp call it.
    __device__ void push_front(bool keep, int word) {
        const unsigned int lanes = __ballot_sync(FULL_WARP, keep);
        if (keep) kept[front + rank(lanes)] = word;
        front += __popc(lanes);
    }
    __device__ void push_back(bool keep, int word) {
        const unsigned int lanes = __ballot_sync(FULL_WARP, keep);
        if (keep) kept[size - 1 - back - rank(lanes)] = word;
        back += __popc(lanes);
    }
    /// Calls f(word) for what is at the front, or at the back; what it returns false for is dropped.
    template <class F>
    __device__ void sift_front(F f) {
        const int count = front;
        front = 0;
        for (int i = threadIdx.x % 32; i - static_cast<int>(threadIdx.x % 32) < count; i += 32) {
            const int word = i < count ? kept[i] : 0;
            const bool keep = i < count && f(word);
            __syncwarp();
            push_front(keep, word);
            __syncwarp();
        }
    }
    template <class F>
    __device__ void sift_back(F f) {
        const int count = back;
        back = 0;
        for (int i = threadIdx.x % 32; i - static_cast<int>(threadIdx.x % 32) < count; i += 32) {
            const int word = i < count ? kept[size - 1 - i] : 0;
            const bool keep = i < count && f(word);
            __syncwarp();
            push_back(keep, word);
            __syncwarp();
        }
    }
};

// death[p] of a local maximum p is the value at which its component dies: -inf where it never does, its own value if that
// is less than `least` away. Any other pixel dies as it enters. Components can first meet only at a pixel whose earlier
// neighbours are in several groups; once those are of one component it is done with. A round finds the first meeting of
// every component, and lets those die that meet an older one there; the last component to meet anything is the oldest of
// them. Cooperative; `list` has room for all pixels.
template <bool EIGHT>
__global__ void __launch_bounds__(256)
    tda_persistence(const float* x, float* death, int* component, int* up, unsigned long long* meeting, int* list, int* died,
                    int rows, int cols, float least) {
    const auto grid = cooperative_groups::this_grid();
    const Filtration<EIGHT> image = {x, rows, cols};
    WarpPixels own(list, rows * cols);
    const int lane = threadIdx.x % 32;
    for (int first = 0; first < own.size; first += 32) {
        const int place = first + lane, p = own.begin + place;
        bool saddle = false, maximum = false;
        unsigned int bits = 0;
        if (place < own.size) {
            int highest;
            bits = image.before(p, highest);
            saddle = __popc(Ring::groups<EIGHT>(bits)) > 1, maximum = highest == p && !isnan(x[p]);
            up[p] = highest, death[p] = maximum ? -infinity() : x[p], meeting[p] = 0;
        }
        own.push_front(saddle, static_cast<int>(place << 8 | bits));
        own.push_back(maximum, place);
    }
    if (grid_thread() == 0) died[0] = 0;
    grid.sync();
    for (int p = own.begin + lane; p < own.begin + own.size; p += 32) component[p] = last_of(up, p);
    grid.sync();
    for (int round = 0;; round = (round + 1) % 3) {
        own.sift_front([&](int word) {
            const int pixel = own.begin + (word >> 8);
            int root[4] = {-1, -1, -1, -1};
            unsigned int left = Ring::groups<EIGHT>(word & 0xff);
            bool several = false;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                if (left == 0) break;
                const int bit = __ffs(static_cast<int>(left)) - 1, other = pixel + Ring::down(bit) * cols + Ring::right(bit);
                left &= left - 1;
                const int known = static_cast<const volatile int*>(component)[other];
                root[k] = last_of(up, known);
                if (root[k] != known) atomicExch(component + other, root[k]);
                several |= root[k] != root[0];
            }
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (several && root[k] >= 0) atomicMax(meeting + root[k], image.key(pixel));
            return several;
        });
        if (grid_thread() == 0) died[(round + 1) % 3] = 0;
        grid.sync();
        own.sift_back([&](int place) {
            const int p = own.begin + place;
            const unsigned long long at = meeting[p];
            if (at == 0) return true;
            unsigned long long oldest = image.key(p);
            image.earlier(at, [&](int other) { oldest = max(oldest, image.key(last_of(up, component[other]))); });
            meeting[p] = 0;
            const int older = image.pixel_of(oldest);
            if (older == p) return true;
            const float value = x[image.pixel_of(at)];
            atomicExch(up + p, older);
            death[p] = x[p] - value < least ? x[p] : value;
            atomicExch(died + round, 1);
            return false;
        });
        grid.sync();
        if (died[round] == 0) break;
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
