#include "sums/column_sums.cuh"
#include "entropy/gaussian.cuh"

// next = mu + kappa (J^T (precision (o - g)) + (prior - mu) / variance), the last term where PRIOR; next may be mu. J is
// read once, errors are weighed on the way.
template <class T, bool PRIOR>
__global__ void __launch_bounds__(256)
    fused_belief_update(const T* mu, const T* jacobian, const T* o, const T* g, const T* precision, const T* prior,
                        const T* variance, T* next, T* parts, unsigned int* arrived, T kappa, int m, int n, int splits) {
    const auto error = [=](int row) { return PredictionError<T, true>{}(o[row], g[row], precision[row]); };
    T gradient;
    if (!column_sums(jacobian, error, parts, arrived, m, n, splits, &gradient)) return;
    const int column = blockIdx.x / splits * BLOCK_COLUMNS<T> + threadIdx.x;
    if (threadIdx.x >= BLOCK_COLUMNS<T> || column >= n) return;
    const T belief = mu[column];
    if constexpr (PRIOR) gradient += (prior[column] - belief) / variance[column];
    next[column] = fma(kappa, gradient, belief);
}
