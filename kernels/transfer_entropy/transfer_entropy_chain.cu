#include "fused_distance_kth.cu"
#include "fused_te_reduction.cu"
#include "te_compute.cu"
#include "te_compute_distances.cu"
#include "te_count_neighbors_xz.cu"
#include "te_count_neighbors_y.cu"
#include "te_count_neighbors_z.cu"
#include "te_find_kth_distance.cu"
#include "te_reduce_sum.cu"

// The whole estimate in one launch: a warp finds its points' radii and then their counts; no point waits for another.
template <int DX, int DY, int K, int OWN>
__global__ void __launch_bounds__(TE_THREADS)
    fused_transfer_entropy(const float* x_past, const float* y_past, const float* y_future, float* mean, double* by_block,
                           unsigned int* arrived, int n) {
    const Cloud<DX, 1, DY> points{x_past, y_future, y_past, n};
    const WarpPoints<DX, DY, OWN> own(points);
    float eps[OWN];
    find_radii<DX, DY, K>(points, own, eps);
    NeighbourCounts found[OWN];
    count_neighbours(points, own, eps, found);
    mean_of_terms(own, found, by_block, arrived, mean, n, K);
}
