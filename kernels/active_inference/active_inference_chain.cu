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

// The whole evaluation in one launch. The last block of a tile of columns has the gradient of its states and takes them
// through update, velocity and divergence; the blocks of the first tile pass over all observations and add up their
// likelihoods; the last tile to finish adds the sums.
template <class T>
__global__ void __launch_bounds__(256)
    fused_active_inference(const T* level, const T* o, const T* g, const T* precision, const T* jacobian, const T* mu,
                           const T* var_q, const T* var_p, const T* before, T* next, T* velocity, T* free_energy,
                           T* complexity, T* accuracy, T* parts, double* by_tile, double* by_split, unsigned int* arrived,
                           T kappa, T dt, T alpha, T beta, int length, int m, int n, int splits) {
    const int split = blockIdx.x % splits, tile = blockIdx.x / splits, tiles = gridDim.x / splits;
    if (tile == 0) {
        const int share = (m + splits - 1) / splits, end = min(m, (split + 1) * share);
        double likelihood = 0.0;
        for (int row = split * share + threadIdx.x; row < end; row += blockDim.x)
            likelihood += LogLikelihood<T>{}(o[row] - g[row], precision[row]);
        likelihood = block_sum(likelihood);
        if (threadIdx.x == 0) by_split[split] = likelihood;
    }
    const auto error = [=](int row) { return PredictionError<T, true>{}(o[row], g[row], precision[row]); };
    T gradient;
    if (!column_sums(jacobian, error, parts, arrived, m, n, splits, &gradient)) return;
    const int column = tile * BLOCK_COLUMNS<T> + threadIdx.x;
    double divergence = 0.0;
    if (threadIdx.x < BLOCK_COLUMNS<T> && column < n) {
        const T belief = mu[column], prior = level[column % length], spread = var_p[column];
        const T moved = fma(kappa, gradient + (prior - belief) / spread, belief);
        next[column] = moved;
        velocity[column] = Combine<T>{alpha, beta}((moved - belief) / dt, before[column]);
        divergence = GaussianDivergence<T>{}(moved, prior, var_q[column], spread);
    }
    divergence = block_sum(divergence);
    if (threadIdx.x == 0) by_tile[tile] = divergence;
    if (!last_block(arrived + tiles, tiles)) return;
    double sum[2] = {};
    for (int i = threadIdx.x; i < tiles; i += blockDim.x) sum[0] += __ldcg(by_tile + i);
    for (int i = threadIdx.x; i < splits; i += blockDim.x) sum[1] += __ldcg(by_split + i);
    sum[0] = block_sum(sum[0]), sum[1] = block_sum(sum[1]);
    if (threadIdx.x > 0) return;
    *free_energy = static_cast<T>(sum[0] - sum[1]);
    *complexity = static_cast<T>(sum[0]);
    *accuracy = static_cast<T>(sum[1]);
}
