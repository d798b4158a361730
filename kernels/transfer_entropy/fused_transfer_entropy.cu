#include "neighbours/te_points.cuh"

// The whole estimate in one launch: a warp finds its points' radii and then their counts; no point waits for another.
template <int DX, int DY, int K, int OWN>
__global__ void __launch_bounds__(TE_THREADS)
    fused_transfer_entropy(const float* x_past, const float* y_past, const float* y_future, float* mean, double* by_block,
                           unsigned int* arrived, int n) {
    using Points = Cloud<DX, 1, DY>;
    const Points points{x_past, y_future, y_past, n};
    const WarpPoints<Points, OWN> own(points);
    float eps[OWN];
    find_radii<K>(points, own, eps);
    NeighbourCounts found[OWN];
    count_neighbours(points, own, eps, found);
    mean_of_terms(own, found, by_block, arrived, mean, n, K);
}
