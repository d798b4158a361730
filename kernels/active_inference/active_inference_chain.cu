#include "../tensor/axpby.cu"
#include "../tensor/gemv.cu"
#include "ai_accuracy.cu"
#include "ai_belief_update.cu"
#include "ai_hierarchical_project.cu"
#include "ai_kl_divergence.cu"
#include "ai_precision_weight.cu"
#include "ai_prediction_error.cu"
#include "ai_sum_reduction.cu"
#include "ai_velocity_update.cu"
#include "fused_belief_update.cu"
#include "fused_free_energy.cu"

/// The log likelihood of all observations, in thread 0.
template <class T>
__device__ double likelihood_of(const T* o, const T* g, const T* precision, int m) {
    double own = 0.0;
    for (int row = threadIdx.x; row < m; row += blockDim.x) own += LogLikelihood<T>{}(o[row] - g[row], precision[row]);
    return block_sum(own);
}

// The whole evaluation in one launch. The last block of a tile of columns has the gradient of its states and takes them
// through update, velocity and divergence; block 0 has the observations' likelihood; the last to finish adds all up.
// The states are asked for before the sums, whose wait is theirs too.
template <class T, int LANES>
__global__ void __launch_bounds__(256)
    fused_active_inference(const T* level, const T* o, const T* g, const T* precision, const T* jacobian, const T* mu,
                           const T* var_q, const T* var_p, const T* before, T* next, T* velocity, T* free_energy,
                           T* complexity, T* accuracy, T* parts, double* by_tile, unsigned int* arrived, T kappa, T dt,
                           T alpha, T beta, int length, int m, int n, int splits) {
    const int tiles = (gridDim.x - 1) / splits, block = static_cast<int>(blockIdx.x) - 1, tile = block / splits;
    if (block < 0) {
        const double likelihood = likelihood_of(o, g, precision, m);
        if (threadIdx.x == 0) by_tile[tiles] = likelihood;
    } else {
        const int column = tile * BLOCK_COLUMNS<T, LANES> + threadIdx.x;
        const bool mine = threadIdx.x < BLOCK_COLUMNS<T, LANES> && column < n;
        T belief = 0, prior = 0, spread = 0, spread_q = 0, last = 0;
        if (mine) {
            belief = mu[column], prior = level[column % length], last = before[column];
            spread = var_p[column], spread_q = var_q[column];
        }
        const auto error = [=](int row) { return PredictionError<T, true>{}(o[row], g[row], precision[row]); };
        T gradient;
        if (!column_sums<LANES>(jacobian, error, parts, arrived, m, n, splits, &gradient, block)) return;
        double divergence = 0.0;
        if (mine) {
            const T moved = fma(kappa, gradient + (prior - belief) / spread, belief);
            next[column] = moved;
            velocity[column] = Combine<T>{alpha, beta}((moved - belief) / dt, last);
            divergence = GaussianDivergence<T>{}(moved, prior, spread_q, spread);
        }
        divergence = block_sum(divergence);
        if (threadIdx.x == 0) by_tile[tile] = divergence;
    }
    if (!last_block(arrived + tiles, tiles + 1)) return;
    double sum = 0.0;
    for (int i = threadIdx.x; i < tiles; i += blockDim.x) sum += __ldcg(by_tile + i);
    const double likelihood = __ldcg(by_tile + tiles);
    sum = block_sum(sum);
    if (threadIdx.x > 0) return;
    *free_energy = static_cast<T>(sum - likelihood);
    *complexity = static_cast<T>(sum);
    *accuracy = static_cast<T>(likelihood);
}
