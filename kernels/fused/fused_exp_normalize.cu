#include "launches/launch_overlap.cuh"
#include "layers/row_items.cuh"
#include "layers/softmax.cuh"
#include "arrays/vector_load.cuh"

__device__ inline MaxSum no_element() { return {-infinity(), 0.0f}; }

// Takes x into the state; the sum is rescaled where x is a new maximum.
__device__ inline void take(MaxSum& state, float x, float scale) {
    if (x > state.max) state = {x, state.sum * expf(scale * (state.max - x))};
    state.sum += weight(x, state.max, scale);
}

// Up to 8192 elements, in the registers of one block: one read. A vector of -inf gives 0 / 0.
template <int ITEMS, int WIDTH>
__global__ void __launch_bounds__(256) fused_exp_normalize(const float* x, float* y, float temperature, long long n) {
    const float scale = 1.0f / temperature;
    float item[ITEMS];
    load_items<ITEMS, WIDTH>(x, static_cast<int>(n), -infinity(), item);
    float max = -infinity();
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) max = fmaxf(max, item[k]);
    max = block_max(max);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) sum += item[k] = weight(item[k], max, scale);
    const float factor = 1.0f / block_sum(sum);
    store_items<ITEMS, WIDTH>(y, static_cast<int>(n), item, [=](int, Group<WIDTH> v) { return scaled(v, factor); });
}

__device__ unsigned int arrived;

// Any length, first step: maximum and sum of the whole vector in state[2], by the last block to finish.
extern "C" __global__ void __launch_bounds__(512) find_max_sum(const float* x, float* by_block, float* state,
                                                               float temperature, long long n) {
    let_next_begin();
    const float scale = 1.0f / temperature;
    const MergeMaxSum merge = {scale};
    MaxSum part[4] = {no_element(), no_element(), no_element(), no_element()};
    visit_elements<4>(x, n, [&](float value, int slot) { take(part[slot], value, scale); });
    const MaxSum own = merge(merge(part[0], part[1]), merge(part[2], part[3]));
    MaxSum all = block_reduce(own, merge, no_element());
    if (threadIdx.x == 0) by_block[2 * blockIdx.x] = all.max, by_block[2 * blockIdx.x + 1] = all.sum;
    if (!last_block(&arrived)) return;
    all = no_element();
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        all = merge(all, {__ldcg(by_block + 2 * i), __ldcg(by_block + 2 * i + 1)});
    all = block_reduce(all, merge, no_element());
    if (threadIdx.x == 0) state[0] = all.max, state[1] = all.sum;
}

// Second step, four elements a thread and the last block first, because the end of x is still in the L2 cache.
extern "C" __global__ void __launch_bounds__(256) write_weights(const float* x, const float* state, float* y,
                                                                float temperature, long long n) {
    await_last_launch();
    const float scale = 1.0f / temperature;
    const float max = state[0], factor = 1.0f / state[1];
    const auto share = [&](float value) { return factor * weight(value, max, scale); };
    const long long at = 4 * (static_cast<long long>(gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x);
    if (at + 4 <= n) store4(y + at, map4(load4(x + at), share));
    else for (long long i = at; i < n; ++i) y[i] = share(x[i]);
}
