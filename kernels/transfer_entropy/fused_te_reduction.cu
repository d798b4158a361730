#include "neighbours/te_points.cuh"

// mean = the transfer entropy from given radii: three counts, terms and their mean in one pass over all pairs.
template <int DX, int DY, int OWN>
__global__ void __launch_bounds__(TE_THREADS)
    fused_te_reduction(const float* x_past, const float* y_past, const float* y_future, const float* eps, float* mean,
                       double* by_block, unsigned int* arrived, int n, int k) {
    using Points = Cloud<DX, 1, DY>;
    const Points points{x_past, y_future, y_past, n};
    const WarpPoints<Points, OWN> own(points);
    float radius[OWN];
#pragma unroll
    for (int p = 0; p < OWN; ++p) radius[p] = own.first + p < n ? eps[own.first + p] : 0.0f;
    NeighbourCounts found[OWN];
    count_neighbours(points, own, radius, found);
    mean_of_terms(own, found, by_block, arrived, mean, n, k);
}
