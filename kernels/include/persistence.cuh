#pragma once

#include <cooperative_groups.h>

#include "reduce.cuh"
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
