#include "arrays/map_arrays.cuh"

// next[i] = mu[i] + kappa gradient[i]; next may be mu.
template <class T>
__global__ void ai_belief_update(const T* mu, const T* gradient, T* next, T kappa, long long n) {
    map_arrays(next, n, [=](T belief, T slope) { return fma(kappa, slope, belief); }, mu, gradient);
}

// The same with the gradient of the prior: (prior[i] - mu[i]) / variance[i] besides.
template <class T>
__global__ void ai_belief_update_prior(const T* mu, const T* gradient, const T* prior, const T* variance, T* next,
                                       T kappa, long long n) {
    map_arrays(
        next, n, [=](T belief, T slope, T mean, T spread) { return fma(kappa, slope + (mean - belief) / spread, belief); },
        mu, gradient, prior, variance);
}
