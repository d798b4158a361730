#include "logarithms.cuh"
#include "row_sums.cuh"

// Complexity D(q||p) and accuracy E_q[ln p(o|s)] of one state each; what has no mass has no accuracy either.
struct Parts {
    PartialSums<2> partial;

    __device__ void add(float q, float p, float loglik, int slot) {
        partial.add(0, slot, relative_entropy(q, p));
        partial.add(1, slot, q == 0.0f ? 0.0f : q * loglik);
    }

    __device__ void finish(float* free_energy, float* complexity, float* accuracy, double* by_block,
                           unsigned int* arrived) const {
        double sum[2];
        partial.total(sum);
        if (!row_sums(sum, by_block, arrived)) return;
        free_energy[blockIdx.x] = static_cast<float>(sum[0] - sum[1]);
        complexity[blockIdx.x] = static_cast<float>(sum[0]);
        accuracy[blockIdx.x] = static_cast<float>(sum[1]);
    }
};

extern "C" __global__ void __launch_bounds__(512)
    free_energy_kernel(const float* q, const float* p, const float* loglik, float* free_energy, float* complexity,
                       float* accuracy, double* by_block, unsigned int* arrived, long long cols) {
    const long long row = blockIdx.x * cols;
    Parts parts;
    visit_row<2>(cols, [&](const float(&x)[3], int slot) { parts.add(x[0], x[1], x[2], slot); }, q + row, p + row,
                 loglik + row);
    parts.finish(free_energy, complexity, accuracy, by_block, arrived);
}

// One log-likelihood for all states.
extern "C" __global__ void __launch_bounds__(512)
    free_energy_scalar(const float* q, const float* p, float* free_energy, float* complexity, float* accuracy,
                       double* by_block, unsigned int* arrived, long long cols, float loglik) {
    const long long row = blockIdx.x * cols;
    Parts parts;
    visit_row<4>(cols, [&](const float(&x)[2], int slot) { parts.add(x[0], x[1], loglik, slot); }, q + row, p + row);
    parts.finish(free_energy, complexity, accuracy, by_block, arrived);
}
