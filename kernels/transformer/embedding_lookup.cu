#include "columns.cuh"

// out[t, :] = table[id[t], :]; zeros for an id outside the table and for the padding id. `parts` blocks share a row, one
// group per thread. True where the id lies outside.
template <int WIDTH, class Id>
__device__ bool copy_row(const Id* id, const float* table, float* out, long long vocabulary, int cols, long long padding,
                         int parts) {
    const long long token = blockIdx.x / parts;
    const int at = WIDTH * (blockIdx.x % parts * blockDim.x + threadIdx.x);
    const long long row = id[token];
    const bool outside = row < 0 || row >= vocabulary;
    if (at < cols) {
        Group<WIDTH> v = {};
        if (!outside && row != padding) v = load_group<WIDTH>(table + row * cols + at);
        store_group<WIDTH>(out + token * cols + at, v);
    }
    return outside;
}

// WIDTH is 4 where rows are whole groups of four, else 1.
template <int WIDTH, class Id>
__global__ void embedding_lookup(const Id* id, const float* table, float* out, long long vocabulary, int cols,
                                 long long padding, int parts) {
    copy_row<WIDTH>(id, table, out, vocabulary, cols, padding, parts);
}

// The same, counting the ids outside the table in *invalid, which starts at 0.
template <int WIDTH, class Id>
__global__ void embedding_lookup_checked(const Id* id, const float* table, float* out, int* invalid,
                                         long long vocabulary, int cols, long long padding, int parts) {
    const bool outside = copy_row<WIDTH>(id, table, out, vocabulary, cols, padding, parts);
    if (outside && blockIdx.x % parts == 0 && threadIdx.x == 0) atomicAdd(invalid, 1);
}
