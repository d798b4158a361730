#include "mask_bands.cuh"
#include "persistence.cuh"
#include "union_find.cuh"

// Topology of the set of pixels above a threshold. Components are joined first within a block's tile, in shared memory, by
// runs of 32 columns' bits, and then along the tiles' borders; a pixel keeps 16 bits, its component's first pixel in the
// tile, and only those first pixels have parents in the whole image.

constexpr int TILE_ROWS = BANDS * BAND, TILE_COLUMNS = BAND_COLUMNS, TILE = TILE_ROWS * TILE_COLUMNS;
constexpr int WORDS = TILE_COLUMNS / 32;
constexpr unsigned short NONE = 0xffff;

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

/// The tile's bits: bit c of word[r][1 + w] is row r, column 32 w + c. What is outside the tile is not above.
struct TileBits {
    unsigned int word[TILE_ROWS][WORDS + 2];

    /// The first pixel of the run of a pixel that is above, within its word; pixels are numbered row by row.
    __device__ int run(int row, int column) const {
        const unsigned int gaps = ~word[row][column / 32 + 1] & ((1u << column % 32) - 1);
        return row * TILE_COLUMNS + column / 32 * 32 + 32 - __clz(static_cast<int>(gaps));
    }
    __device__ bool above(int row, int column) const { return word[row][column / 32 + 1] >> column % 32 & 1; }

    /// From the bits of each lane of the warp's band, as band_sum gives them. All threads of the block call it.
    __device__ void take(unsigned int own) {
        const int lane = threadIdx.x % 32;
        const auto swap = [&](int step, unsigned int high) {  // makes rows of lanes and lanes of rows, in three steps
            const unsigned int other = shuffle_xor(own, step);
            own = lane & step ? (own & high) | (other >> 4 * step & ~high) : (own & ~high) | (other << 4 * step & high);
        };
        swap(4, 0xffff0000u), swap(2, 0xff00ff00u), swap(1, 0xf0f0f0f0u);
        word[threadIdx.x / 32 * BAND + lane % 8][lane / 8 + 1] = own;
        if (threadIdx.x < TILE_ROWS) word[threadIdx.x][0] = word[threadIdx.x][WORDS + 1] = 0;
        __syncthreads();
    }
};

/// The pixels of a row's word to be joined with those before them, each pair of runs as rarely as the neighbours tell:
/// with the pixel above, and with the ones to the left and to the right of that.
struct Joins {
    unsigned int up, left, right;

    template <bool EIGHT>
    __device__ static Joins of(const unsigned int* here, const unsigned int* over) {
        const unsigned int own = here[0], before = own << 1 | here[-1] >> 31, after = own >> 1 | here[1] << 31;
        const unsigned int top = over[0], top_before = top << 1 | over[-1] >> 31, top_after = top >> 1 | over[1] << 31;
        const unsigned int apart = EIGHT ? own & ~top : 0;
        return {own & top & ~(before & top_before), apart & top_before & ~before, apart & top_after & ~after};
    }
    __device__ bool any() const { return (up | left | right) != 0; }
    /// Takes the next one away: its column, and in `aside` how far to the right the other pixel is.
    __device__ int next(int& aside) {
        unsigned int& from = up ? up : left ? left : right;
        aside = up ? 0 : left ? -1 : 1;
        const int column = __ffs(static_cast<int>(from)) - 1;
        from &= from - 1;
        return column;
    }
};

/// The components of the tile: parent[p] of every run's first pixel p becomes its component's first pixel. A thread takes
/// one word of one row. All threads of the block call it.
template <bool EIGHT>
__device__ void join_in_tile(const TileBits& bits, int* parent) {
    const int word = threadIdx.x / 32 % WORDS, row = threadIdx.x / (32 * WORDS) * 32 + threadIdx.x % 32;
    const unsigned int own = bits.word[row][word + 1], starts = own & ~(own << 1);
    const int first = row * TILE_COLUMNS + 32 * word;
    for (unsigned int left = starts; left; left &= left - 1) {
        const int start = first + __ffs(static_cast<int>(left)) - 1;
        parent[start] = start;
    }
    __syncthreads();
    if (own & 1 & bits.word[row][word] >> 31) join(parent, first, bits.run(row, 32 * word - 1));
    Joins joins = {0, 0, 0};
    if (row > 0) joins = Joins::of<EIGHT>(&bits.word[row][word + 1], &bits.word[row - 1][word + 1]);
    while (joins.any()) {
        int aside;
        const int column = 32 * word + joins.next(aside);
        join(parent, bits.run(row, column), bits.run(row - 1, column + aside));
    }
    __syncthreads();
    for (unsigned int left = starts; left; left &= left - 1) {
        const int start = first + __ffs(static_cast<int>(left)) - 1;
        atomicMin(parent + start, root_of(parent, start));
    }
    __syncthreads();
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
    __shared__ TileBits bits;
    __shared__ int joined[TILE];
    const BandPlace place;
    unsigned int own;
    add_sums(band_sum<EIGHT>({x, rows, cols, threshold}, place, own), sums);
    bits.take(own);
    join_in_tile<EIGHT>(bits, joined);
    const int in_tile = threadIdx.x % 32 * 4;
    for (int k = 0; k < BAND && place.row + k < rows; ++k) {
        const int row = threadIdx.x / 32 * BAND + k;
        unsigned short first[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int column = in_tile + j;
            first[j] = bits.above(row, column) ? static_cast<unsigned short>(joined[bits.run(row, column)]) : NONE;
            if (first[j] == row * TILE_COLUMNS + column) {
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
        each([&](int, int first) { atomicAdd(known + first, 1); });
        __syncthreads();
    }
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    each([&](int pixel, int first) { if (pixel == first) firsts[atomicAdd(&count, 1)] = static_cast<unsigned short>(first); });
    __syncthreads();
    int roots = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {  // all of them wait for memory at once
        const int first = firsts[i], number = in_image(first, cols), root = settled_root(parent, number);
        roots += root == number;
        if (SIZES) atomicAdd(sizes + root, known[first]);
        known[first] = root;
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
