#include "arrays/columns.cuh"

constexpr int TOKENS = 2;  // of a thread, with a group of columns each

// out[t, :] = table[id[t], :]; zeros for an id outside the table and for the padding id. LANES threads copy as many
// groups of columns of TOKENS tokens, all of them on their way before the first is stored. gridDim.x covers the tokens and gridDim.y
// the columns: all tokens pass through the same few columns of the table before the next, so that the L2 cache has what
// a repeated id asks for. Returns how many of this thread's ids lie outside.
template <int WIDTH>
constexpr int LANES = WIDTH == 4 ? 16 : 32;

template <int WIDTH, class Id>
__device__ int copy_rows(const Id* id, const float* table, float* out, long long tokens, long long vocabulary, int cols,
                         long long padding) {
    const int column = WIDTH * (blockIdx.y * LANES<WIDTH> + threadIdx.x % LANES<WIDTH>);
    const long long first = TOKENS * (grid_thread() / LANES<WIDTH>);
    Group<WIDTH> v[TOKENS] = {};
    long long row[TOKENS];
    int outside = 0;
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) row[t] = id[min(first + t, tokens - 1)];
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) {
        const bool known = row[t] >= 0 && row[t] < vocabulary;
        if (known && row[t] != padding && column < cols) v[t] = load_kept<WIDTH>(table + row[t] * cols + column);
        outside += !known && first + t < tokens;
    }
#pragma unroll
    for (int t = 0; t < TOKENS; ++t)
        if (first + t < tokens && column < cols) store_group(out + (first + t) * cols + column, v[t]);
    return outside;
}

// WIDTH is 4 where rows are whole groups of four, else 1.
template <int WIDTH, class Id>
__global__ void __launch_bounds__(256)
    embedding_lookup(const Id* id, const float* table, float* out, long long tokens, long long vocabulary, int cols,
                     long long padding) {
    copy_rows<WIDTH>(id, table, out, tokens, vocabulary, cols, padding);
}

// The same, counting the ids outside the table in *invalid, which starts at 0.
template <int WIDTH, class Id>
__global__ void __launch_bounds__(256)
    embedding_lookup_checked(const Id* id, const float* table, float* out, int* invalid, long long tokens,
                             long long vocabulary, int cols, long long padding) {
    const int outside = copy_rows<WIDTH>(id, table, out, tokens, vocabulary, cols, padding);
    if (outside > 0 && blockIdx.y == 0 && threadIdx.x % LANES<WIDTH> == 0) atomicAdd(invalid, outside);
}
