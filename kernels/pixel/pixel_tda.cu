#include "images/mask_bands.cuh"
#include "images/persistence.cuh"
#include "images/tile_components.cuh"
#include "images/union_find.cuh"

// Topology of the set of pixels above a threshold. Components are joined first within a block's tile, in shared memory, and
// then along the tiles' borders; a pixel keeps 16 bits, its component's first pixel in the tile, and only those first
// pixels have parents in the whole image.

constexpr int TILE = TILE_ROWS * TILE_COLUMNS;
constexpr unsigned short NONE = 0xffff;
static_assert(TILE_ROWS == BANDS * BAND && TILE_COLUMNS == BAND_COLUMNS && PATCH_ROWS == BAND);

/// Adds the threads' sums to *to.
__device__ inline void add_sums(int sum, unsigned long long* to) {
    const int total = block_reduce(sum, Sum{}, 0);
    if (threadIdx.x == 0) atomicAdd(to, static_cast<unsigned long long>(static_cast<long long>(total)));
}

__device__ unsigned int arrived;

// The Euler characteristic, a quarter of the window sum; windows reach one row and one column beyond the image.
template <bool EIGHT>
__global__ void __launch_bounds__(256)
    tda_euler(const float* x, long long* euler, unsigned long long* sums, int rows, int cols, float threshold) {
    const Image image = {x, rows, cols, threshold};
    const BandPlace place;
    unsigned int own;
    add_sums(place.row <= rows ? band_sum<EIGHT>(image, place, own) : 0, sums);
    if (!last_block(&arrived, gridDim.x * gridDim.y) || threadIdx.x > 0) return;
    *euler = static_cast<long long>(atomicExch(sums, 0ull)) / 4;
}

/// The pixel of the image that is number `pixel` of this block's tile.
__device__ inline int in_image(int pixel, int cols) {
    const long long row = static_cast<long long>(blockIdx.y) * TILE_ROWS + pixel / TILE_COLUMNS;
    return static_cast<int>(row * cols + blockIdx.x * TILE_COLUMNS + pixel % TILE_COLUMNS);
}

// The components of each block's tile: local[p] is the number in the tile of the first pixel of p's component, NONE where p
// is not above. parent[f] of such a first pixel f is f. sums[0] gets the window sum.
template <bool EIGHT>
__global__ void __launch_bounds__(256) tda_tiles(const float* x, unsigned short* local, int* parent,
                                                 unsigned long long* sums, int rows, int cols, float threshold) {
    __shared__ TileNodes nodes;
    const BandPlace place;
    const Patch patch;
    unsigned int own, label[BAND];
    add_sums(band_sum<EIGHT>({x, rows, cols, threshold}, place, own), sums);
#pragma unroll
    for (int k = 0; k < BAND; ++k) label[k] = (own >> 4 * k & 0xf) * 0x00204081u & 0x01010101u;  // a bit in each byte
    const PatchRoots roots = tile_components<EIGHT>(label, patch, nodes);
#pragma unroll
    for (int k = 0; k < BAND; ++k) {
        if (place.row + k >= rows) break;
        unsigned short first[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const bool above = own >> (4 * k + j) & 1;
            first[j] = above ? static_cast<unsigned short>(pixel_of_node(roots.of(k, j))) : NONE;
            if (above && roots.of(k, j) == patch.node(k, j)) {
                const int number = in_image(first[j], cols);
                parent[number] = number;
            }
        }
        const long long at = static_cast<long long>(place.row + k) * cols + place.column;
        if (cols % 4 == 0 && place.column < cols)
            *reinterpret_cast<ushort4*>(local + at) = make_ushort4(first[0], first[1], first[2], first[3]);
        for (int j = 0; cols % 4 > 0 && j < 4 && place.column + j < cols; ++j) local[at + j] = first[j];
    }
}

/// The image by the tiles' components.
struct Labelled {
    const unsigned short* local;
    int* parent;
    int rows, cols;

    __device__ unsigned short at(int row, int column) const { return local[static_cast<long long>(row) * cols + column]; }
    __device__ bool above(int row, int column) const { return column >= 0 && column < cols && at(row, column) != NONE; }
    /// The first pixel of a pixel's component in its tile.
    __device__ long long first(int row, int column) const {
        const int in_tile = at(row, column);
        return static_cast<long long>(row / TILE_ROWS * TILE_ROWS + in_tile / TILE_COLUMNS) * cols
               + column / TILE_COLUMNS * TILE_COLUMNS + in_tile % TILE_COLUMNS;
    }
    __device__ void joined(int row, int column, int other_row, int other_column) const {
        join(parent, first(row, column), first(other_row, other_column));
    }
};

// Joins pixels across the borders of tiles: threads below `across` take a pixel under a border each, the others one to
// the right of a border.
template <bool EIGHT>
__global__ void __launch_bounds__(256)
    tda_join(const unsigned short* local, int* parent, int rows, int cols, long long across, long long along) {
    const Labelled image = {local, parent, rows, cols};
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < across) {
        const int row = static_cast<int>(i / cols + 1) * TILE_ROWS, column = static_cast<int>(i % cols);
        if (!image.above(row, column)) return;
        const bool left = image.above(row, column - 1), up_left = image.above(row - 1, column - 1);
        if (image.above(row - 1, column)) {
            if (!(left && up_left)) image.joined(row, column, row - 1, column);
        } else if (EIGHT) {
            if (up_left && !left) image.joined(row, column, row - 1, column - 1);
            if (image.above(row - 1, column + 1) && !image.above(row, column + 1))
                image.joined(row, column, row - 1, column + 1);
        }
    } else if (i < across + along) {
        const long long rest = i - across;
        const int row = static_cast<int>(rest % rows), column = static_cast<int>(rest / rows + 1) * TILE_COLUMNS;
        const bool own = image.above(row, column), left = image.above(row, column - 1);
        if (own && left) image.joined(row, column, row, column - 1);
        if (!EIGHT || row == 0 || own == left) return;
        if (own && image.above(row - 1, column - 1) && !image.above(row - 1, column))
            image.joined(row, column, row - 1, column - 1);
        if (left && image.above(row - 1, column) && !image.above(row - 1, column - 1))
            image.joined(row, column - 1, row - 1, column);
    }
}

// A component's label is one more than the index of its first pixel; betti: components, holes, Euler characteristic.
// sizes[p], 0 before, becomes the number of pixels of the component whose first pixel is p. A block finds the root of each
// of its tile's components once.
template <bool SIZES>
__global__ void __launch_bounds__(256, SIZES ? 3 : 4)
    tda_labels(const unsigned short* local, const int* parent, int* labels, int* sizes, unsigned long long* sums,
               long long* betti, int rows, int cols) {
    __shared__ int known[TILE], count;  // of a component's first pixel in the tile: how many pixels, then its root
    __shared__ unsigned short firsts[TILE / 2];  // of two neighbours one at most is such a pixel
    const BandPlace place;
    uint2 packed[BAND];  // four each
#pragma unroll
    for (int k = 0; k < BAND; ++k) {
        const long long at = static_cast<long long>(place.row + k) * cols + place.column;
        const bool there = place.row + k < rows && place.column < cols;
        const auto one = [&](int j) -> unsigned int { return there && place.column + j < cols ? local[at + j] : NONE; };
        if (there && cols % 4 == 0) packed[k] = *reinterpret_cast<const uint2*>(local + at);
        else packed[k] = make_uint2(one(0) | one(1) << 16, one(2) | one(3) << 16);
    }
    const auto own = [&](int k, int j) -> int { return (j < 2 ? packed[k].x : packed[k].y) >> 16 * (j % 2) & 0xffff; };
    const auto each = [&](auto f) {  // f(number in the tile, that of its component's first pixel)
        const int first = threadIdx.x / 32 * BAND * TILE_COLUMNS + threadIdx.x % 32 * 4;
#pragma unroll
        for (int k = 0; k < BAND; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (own(k, j) != NONE) f(first + k * TILE_COLUMNS + j, own(k, j));
    };
    if (SIZES) {
        each([&](int pixel, int first) { if (pixel == first) known[first] = 0; });
        __syncthreads();
        int last = NONE, alike = 0;  // runs of a thread's pixels count at once: many are of one component
        each([&](int, int first) {
            if (first != last && alike > 0) atomicAdd(known + last, alike), alike = 0;
            last = first, ++alike;
        });
        if (alike > 0) atomicAdd(known + last, alike);
        __syncthreads();
    }
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    each([&](int pixel, int first) { if (pixel == first) firsts[atomicAdd(&count, 1)] = static_cast<unsigned short>(first); });
    __syncthreads();
    int roots = 0;
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i - lane < count; i += blockDim.x) {  // all of them wait for memory at once
        const int first = i < count ? firsts[i] : 0, number = in_image(first, cols);
        const int root = i < count ? settled_root(parent, number) : -1;
        roots += root == number;
        if (SIZES) {  // the warp's components of one root go there at once
            const unsigned int alike = __match_any_sync(FULL_WARP, root);
            const int pixels = __reduce_add_sync(alike, i < count ? known[first] : 0);
            if (root >= 0 && __ffs(static_cast<int>(alike)) - 1 == lane) atomicAdd(sizes + root, pixels);
        }
        if (i < count) known[first] = root;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BAND; ++k) {
        int label[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) label[j] = own(k, j) == NONE ? 0 : known[own(k, j)] + 1;
        const long long at = static_cast<long long>(place.row + k) * cols + place.column;
        if (place.row + k >= rows) break;
        if (cols % 4 == 0 && place.column < cols)
            *reinterpret_cast<int4*>(labels + at) = make_int4(label[0], label[1], label[2], label[3]);
        for (int j = 0; cols % 4 > 0 && j < 4 && place.column + j < cols; ++j) labels[at + j] = label[j];
    }
    add_sums(roots, sums + 1);
    if (!last_block(&arrived, gridDim.x * gridDim.y) || threadIdx.x > 0) return;
    const long long euler = static_cast<long long>(atomicExch(sums, 0ull)) / 4;
    const long long components = static_cast<long long>(atomicExch(sums + 1, 0ull));
    betti[0] = components, betti[1] = components - euler, betti[2] = euler;
}

// The older score: neighbours above the threshold, a tenth of the opposite pairs of them, a hundredth of the pixel.
extern "C" __global__ void __launch_bounds__(256)
    tda_map(const float* x, float* map, int rows, int cols, float threshold) {
    const Image image = {x, rows, cols, threshold};
    const BandPlace place;
    if (place.row >= rows) return;
    const bool fours = image.in_fours(), stores = fours && misalignment(map) == 0;
    float4 v[BAND + 2];
#pragma unroll
    for (int k = 0; k < BAND + 2; ++k) v[k] = image.four(place.row - 1 + k, place.column, fours);
    const unsigned int left = column_bits<BAND + 2>(image, place.row - 1, place.first_column() - 1);
    const unsigned int right = column_bits<BAND + 2>(image, place.row - 1, place.first_column() + BAND_COLUMNS);
    const auto row = [&](int k) { return ByteRow(image.bits(v[k], 8), left >> k & 1, right >> k & 1); };
    ByteRow up = row(0), now = row(1);
#pragma unroll
    for (int k = 1; k <= BAND; ++k) {
        const ByteRow down = row(k + 1);
        const unsigned int tens = neighbour_score(up, now, down);
        const auto score = [&](float pixel, int byte) {
            return fmaf(0.01f, pixel, 0.1f * static_cast<float>(tens >> 8 * byte & 0xff));
        };
        const float4 scores = make_float4(score(v[k].x, 0), score(v[k].y, 1), score(v[k].z, 2), score(v[k].w, 3));
        if (place.row + k <= rows) image.store(map, place.row + k - 1, place.column, scores, stores);
        up = now, now = down;
    }
}
