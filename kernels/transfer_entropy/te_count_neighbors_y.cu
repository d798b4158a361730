#include "neighbours/te_counts.cuh"

// Neighbours in y's future and past.
template <int DY, int OWN>
__global__ void __launch_bounds__(COUNTERS)
    te_count_neighbors_y(const float* y_future, const float* y_past, const float* eps, int* counts, int n) {
    count_nearer<1, DY, OWN>(y_future, y_past, eps, counts, n);
}
