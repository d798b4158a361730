#include "neighbours/te_counts.cuh"

// Neighbours in both pasts.
template <int DX, int DY, int OWN>
__global__ void __launch_bounds__(COUNTERS)
    te_count_neighbors_xz(const float* x_past, const float* y_past, const float* eps, int* counts, int n) {
    count_nearer<DX, DY, OWN>(x_past, y_past, eps, counts, n);
}
