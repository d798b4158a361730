#include "neighbours/neighbours.cuh"

// distances[i, j] in the joint space of x's past, y's future and y's past; infinite from a point to itself. A thread has
// four columns and walks down ROWS rows; STORE elements a store.
template <int DX, int DY, int ROWS, int STORE>
__global__ void __launch_bounds__(256)
    te_compute_distances(const float* x_past, const float* y_past, const float* y_future, float* distances, int n) {
    constexpr int D = DX + 1 + DY;
    const Cloud<DX, 1, DY> points{x_past, y_future, y_past, n};
    const int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (column >= n) return;
    float other[4][D];
#pragma unroll
    for (int k = 0; k < 4; ++k) points.read(column + k, other[k]);
    const int end = min(n, static_cast<int>(blockIdx.y + 1) * ROWS);
    for (int row = blockIdx.y * ROWS; row < end; ++row) {
        float own[D], apart[4];
        points.read(row, own);
#pragma unroll
        for (int k = 0; k < 4; ++k) apart[k] = column + k == row ? infinity() : distance<0, D>(own, other[k]);
        float* const to = distances + static_cast<long long>(row) * n + column;
        if constexpr (STORE == 4) {
            *reinterpret_cast<float4*>(to) = make_float4(apart[0], apart[1], apart[2], apart[3]);
        } else {
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (column + k < n) to[k] = apart[k];
        }
    }
}
