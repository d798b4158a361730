#include "neighbours/te_counts.cuh"

// Neighbours in y's past alone.
template <int DY, int OWN>
__global__ void __launch_bounds__(COUNTERS)
    te_count_neighbors_z(const float* y_past, const float* eps, int* counts, int n) {
    count_nearer<0, DY, OWN>(nullptr, y_past, eps, counts, n);
}
