#include "reduce.cuh"

// Topology of the set of pixels above a threshold. A warp sees 32 columns of a row as bits, with one more on each side,
// so that windows and neighbours are logic on words; it walks STRIP rows and reads each once.

constexpr int STRIP = 16;

/// The bit of column c - 1 + k of lane c's row is bit c + k.
using Bits = unsigned long long;

struct Image {
    const float* x;
    int rows, cols;
    float threshold;

    /// This warp's part of a row: lane l's own pixel is bit l + 1. All lanes call it.
    __device__ Bits bits(int row, int first) const {
        if (row < 0 || row >= rows) return 0;
        const int lane = threadIdx.x % 32, column = first + lane, beside = lane == 0 ? first - 1 : first + 32;
        const float* const from = x + static_cast<long long>(row) * cols;
        const bool own = column < cols && from[column] > threshold;
        const bool edge = (lane == 0 || lane == 31) && beside >= 0 && beside < cols && from[beside] > threshold;
        const unsigned int inner = __ballot_sync(FULL_WARP, own), outer = __ballot_sync(FULL_WARP, edge);
        return Bits(inner) << 1 | (outer & 1) | Bits(outer >> 31) << 33;
    }
};

/// Where a warp works: its first column, and its strip of rows. Strips reach one row and one column beyond the image.
struct Part {
    int first, begin, end;

    __device__ explicit Part(int rows) {
        first = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 32;
        begin = blockIdx.y * STRIP;
        end = min(begin + STRIP, rows + 1);
    }
};

/// Four times the Euler characteristic of the 2x2 windows whose lower right pixels are the warp's: Q1 - Q3 -+ 2 QD.
template <bool EIGHT>
__device__ int window_sum(Bits above, Bits here) {
    const unsigned int a = here >> 1, b = here, c = above >> 1, d = above;
    const unsigned int odd = a ^ b ^ c ^ d, pair = (a & b) | (c & d), diagonal = (a ^ b) & (c ^ d) & (a ^ c);
    return __popc(odd & ~pair) - __popc(odd & pair) + (EIGHT ? -2 : 2) * __popc(diagonal);
}

/// Every pixel's first parent is the first pixel of its run in the warp's columns; -1 where it is not above.
__device__ inline void start_parents(int* parent, Bits here, int row, int first, int cols) {
    const int lane = threadIdx.x % 32, column = first + lane;
    if (column >= cols) return;
    const unsigned int gaps = ~static_cast<unsigned int>(here >> 1) & ((1u << lane) - 1);
    const int start = first + 32 - __clz(gaps);
    const long long line = static_cast<long long>(row) * cols;
    parent[line + column] = here >> (lane + 1) & 1 ? static_cast<int>(line + start) : -1;
}

// The window sum of the image into sums[0]; parents and every warp's bits of every row too where LABELS.
template <bool EIGHT, bool LABELS>
__global__ void __launch_bounds__(256)
    tda_scan(const float* x, int* parent, Bits* bits, unsigned long long* sums, int rows, int cols, int words,
             float threshold) {
    const Image image = {x, rows, cols, threshold};
    const Part part(rows);
    int sum = 0;
    if (part.first <= cols) {
        Bits above = image.bits(part.begin - 1, part.first);
#pragma unroll 4
        for (int row = part.begin; row < part.end; ++row) {
            const Bits here = image.bits(row, part.first);
            sum += window_sum<EIGHT>(above, here);
            if (LABELS && row < rows) {
                start_parents(parent, here, row, part.first, cols);
                if (threadIdx.x % 32 == 0) bits[static_cast<long long>(row) * words + part.first / 32] = here;
            }
            above = here;
        }
    }
    const int total = block_reduce(threadIdx.x % 32 == 0 ? sum : 0, Sum{}, 0);
    if (threadIdx.x == 0) atomicAdd(sums, static_cast<unsigned long long>(static_cast<long long>(total)));
}

/// The root of a pixel while others are being joined: a parent only ever becomes a smaller one of the same component.
__device__ inline int root_of(volatile int* parent, int pixel) {
    for (int next = parent[pixel]; next != pixel; next = parent[pixel]) pixel = next;
    return pixel;
}

/// Joins two components: the larger root gets the smaller one as its parent.
__device__ inline void join(int* parent, long long one, long long other) {
    int a = root_of(parent, static_cast<int>(one)), b = root_of(parent, static_cast<int>(other));
    while (a != b) {
        const int high = max(a, b), low = min(a, b);
        const int held = atomicMin(parent + high, low);
        if (held == high) return;
        a = root_of(parent, held);
        b = low;
    }
}

// Joins pixels across rows and across warps, each pair of runs as rarely as the neighbours tell.
template <bool EIGHT>
__global__ void __launch_bounds__(256) tda_join(const Bits* bits, int* parent, int rows, int cols, int words) {
    const Part part(rows);
    const int lane = threadIdx.x % 32, column = part.first + lane;
    if (part.first >= cols) return;
    const Bits* from = bits + static_cast<long long>(part.begin) * words + part.first / 32;
    Bits above = part.begin > 0 ? from[-words] : 0;
    for (int row = part.begin; row < min(part.end, rows); ++row, from += words) {
        const Bits here = *from;
        const int now = here >> lane & 7, up = above >> lane & 7;  // left 1, own 2, right 4
        const long long pixel = static_cast<long long>(row) * cols + column;
        above = here;
        if (!(now & 2) || column >= cols) continue;
        if (lane == 0 && now & 1) join(parent, pixel, pixel - 1);
        if (up & 2) {
            if ((now & 1 & up) == 0) join(parent, pixel, pixel - cols);
        } else if (EIGHT) {
            if (up & 1 && !(now & 1)) join(parent, pixel, pixel - cols - 1);
            if (up & 4 && !(now & 4)) join(parent, pixel, pixel - cols + 1);
        }
    }
}

__device__ unsigned int arrived;

// A component's label is one more than the index of its first pixel; betti: components, holes, Euler characteristic.
extern "C" __global__ void __launch_bounds__(256)
    tda_labels(const int* parent, int* labels, unsigned long long* sums, long long* betti, long long pixels) {
    int roots = 0;
    const long long all = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < pixels; i += all) {
        int root = parent[i];
        roots += root == i;
        if (root >= 0)
            for (int next = parent[root]; next != root; next = parent[root]) root = next;
        labels[i] = root + 1;
    }
    roots = block_reduce(roots, Sum{}, 0);
    if (threadIdx.x == 0) atomicAdd(sums + 1, static_cast<unsigned long long>(roots));
    if (!last_block(&arrived) || threadIdx.x > 0) return;
    const long long euler = static_cast<long long>(atomicAdd(sums, 0ull)) / 4;
    const long long components = static_cast<long long>(atomicAdd(sums + 1, 0ull));
    betti[0] = components, betti[1] = components - euler, betti[2] = euler;
}

// A quarter of the window sum.
extern "C" __global__ void tda_euler(const unsigned long long* sums, long long* euler) {
    *euler = static_cast<long long>(*sums) / 4;
}

// The older score: neighbours above the threshold, a tenth of the opposite pairs of them, a hundredth of the pixel.
extern "C" __global__ void __launch_bounds__(256)
    tda_map(const float* x, float* map, int rows, int cols, float threshold) {
    const Image image = {x, rows, cols, threshold};
    const Part part(rows);
    const int lane = threadIdx.x % 32, column = part.first + lane;
    if (part.first >= cols) return;
    Bits above = image.bits(part.begin - 1, part.first), here = image.bits(part.begin, part.first);
    for (int row = part.begin; row < min(part.end, rows); ++row) {
        const Bits below = image.bits(row + 1, part.first);
        const unsigned int up = above >> lane & 7, now = here >> lane & 5, down = below >> lane & 7;
        const unsigned int turned = __brev(down) >> 29;  // the pixel opposite to each of `up`
        const int pairs = __popc(up & turned) + (now == 5);
        const int count = __popc(up) + __popc(now) + __popc(down);
        const long long at = static_cast<long long>(row) * cols + column;
        const float score = fmaf(0.1f, static_cast<float>(pairs), static_cast<float>(count));
        if (column < cols) map[at] = fmaf(0.01f, x[at], score);
        above = here;
        here = below;
    }
}
