#include "entropy/logarithms.cuh"
#include "sums/row_sums.cuh"

/// Complexity D(q||p) and accuracy E_q[ln p(o|s)] of this thread's states; what has no mass has no accuracy either.
/// loglik(x) is the log-likelihood of a state. Where a state is odd, all are taken anew.
template <int UNROLL, int ARRAYS, class Loglik, class... Arrays>
__device__ PartialSums<2> parts_of(long long cols, Loglik loglik, const Arrays*... arrays) {
    PartialSums<2> partial;
    OrdinaryTerms terms;
    const auto visit = [&](auto term) {
        return [&, term](const float(&x)[ARRAYS], int slot) {
            partial.add(0, slot, term(x[0], x[1]));
            partial.add(1, slot, x[0] == 0.0f ? 0.0f : x[0] * loglik(x));
        };
    };
    visit_row<UNROLL>(cols, visit([&](float q, float p) { return terms(q, p); }), arrays...);
    if (terms.odd) {
        partial = PartialSums<2>();
        visit_row<1>(cols, visit([](float q, float p) { return relative_entropy(q, p); }), arrays...);
    }
    return partial;
}

__device__ inline void finish(const PartialSums<2>& partial, float* free_energy, float* complexity, float* accuracy,
                              double* by_block, unsigned int* arrived) {
    double sum[2];
    partial.total(sum);
    if (!row_sums(sum, by_block, arrived)) return;
    free_energy[blockIdx.x] = static_cast<float>(sum[0] - sum[1]);
    complexity[blockIdx.x] = static_cast<float>(sum[0]);
    accuracy[blockIdx.x] = static_cast<float>(sum[1]);
}

extern "C" __global__ void __launch_bounds__(512)
    free_energy_kernel(const float* q, const float* p, const float* loglik, float* free_energy, float* complexity,
                       float* accuracy, double* by_block, unsigned int* arrived, long long cols) {
    const long long row = blockIdx.x * cols;
    const auto third = [](const float(&x)[3]) { return x[2]; };
    finish(parts_of<2, 3>(cols, third, q + row, p + row, loglik + row), free_energy, complexity, accuracy, by_block,
           arrived);
}

// One log-likelihood for all states.
extern "C" __global__ void __launch_bounds__(512)
    free_energy_scalar(const float* q, const float* p, float* free_energy, float* complexity, float* accuracy,
                       double* by_block, unsigned int* arrived, long long cols, float loglik) {
    const long long row = blockIdx.x * cols;
    const auto same = [=](const float(&)[2]) { return loglik; };
    finish(parts_of<4, 2>(cols, same, q + row, p + row), free_energy, complexity, accuracy, by_block, arrived);
}
