#include "entropy/gaussian.cuh"

template <class T>
__global__ void ai_kl_divergence(const T* mu_q, const T* mu_p, const T* var_q, const T* var_p, T* components, long long n) {
    map_arrays(components, n, GaussianDivergence<T>{}, mu_q, mu_p, var_q, var_p);
}
