#include "neighbours/te_points.cuh"

// local[i] = psi(k) - psi(n_y + 1) - psi(n_xz + 1) + psi(n_z + 1), in nats.
extern "C" __global__ void __launch_bounds__(256)
    te_compute(const int* n_y, const int* n_xz, const int* n_z, float* local, int n, int k) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) local[i] = static_cast<float>(te_term(k, n_y[i], n_xz[i], n_z[i]));
}
