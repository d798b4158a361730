// One warp, one WMMA product D = A B + C of each shape and type.
#include <mma.h>
using namespace nvcuda::wmma;

// Rows (or columns) of inputs are padded to the 16 bytes that WMMA asks for.
template <typename T>
constexpr int padded(int width) { return width * sizeof(T) < 16 ? 16 / sizeof(T) : width; }

// What is stored of an element: TF32 travels as float.
template <typename T>
struct Kept { using type = T; };
template <>
struct Kept<precision::tf32> { using type = float; };
template <typename Layout>
constexpr bool by_rows_of = false;
template <>
constexpr bool by_rows_of<row_major> = true;

template <typename TA, typename TC, int M, int N, int K, typename LA, typename LB>
__global__ void product(const typename Kept<TA>::type* a, const typename Kept<TA>::type* b, const TC* c, TC* d, int by_rows) {
    const layout_t layout = by_rows ? mem_row_major : mem_col_major;
    fragment<matrix_a, M, N, K, TA, LA> fa;
    fragment<matrix_b, M, N, K, TA, LB> fb;
    fragment<accumulator, M, N, K, TC> fc;
    load_matrix_sync(fa, a, padded<decltype(*a)>(by_rows_of<LA> ? K : M));
    load_matrix_sync(fb, b, padded<decltype(*b)>(by_rows_of<LB> ? N : K));
    load_matrix_sync(fc, c, by_rows ? N : M, layout);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(d, fc, by_rows ? N : M, layout);
}

// Element-wise work on fragments is the same whatever the layout.
__global__ void scaled(const half* a, float* d) {
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fd;
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, a, 16);
    fill_fragment(fd, 1.5f);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = fa.x[i] * half(2.0f);
    mma_sync(fd, fa, fb, fd);
    for (int i = 0; i < fd.num_elements; ++i) fd.x[i] = fd.x[i] > 0.0f ? fd.x[i] : 0.0f;
    store_matrix_sync(d, fd, 16, mem_row_major);
}

// Which element of the tile each slot of each lane's fragment holds. Nothing may depend on it.
template <typename Fragment, typename T>
__device__ void tell(const Fragment& held, T* slots) {
    for (int i = 0; i < held.num_elements; ++i) slots[threadIdx.x * held.num_elements + i] = held.x[i];
}
template <typename Use, typename Layout>
__global__ void operand_slots(const half* tile, half* slots) {
    fragment<Use, 16, 16, 16, half, Layout> held;
    load_matrix_sync(held, tile, 16);
    tell(held, slots);
}
__global__ void accumulator_slots(const float* tile, float* slots) {
    fragment<accumulator, 16, 16, 16, float> held;
    load_matrix_sync(held, tile, 16, mem_row_major);
    tell(held, slots);
}

__global__ void off_by_half_a_row(const half* a, float* d) {
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    load_matrix_sync(fa, a + 8, 16);
    d[threadIdx.x] = fa.x[0];
}
