#include "te_counts.cuh"

// Neighbours in both pasts.
template <int DX, int DY>
__global__ void __launch_bounds__(256)
    te_count_neighbors_xz(const float* x_past, const float* y_past, const float* eps, int* counts, int n) {
    count_nearer<DX, DY>(x_past, y_past, eps, counts, n);
}
