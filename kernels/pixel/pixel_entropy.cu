#include "images/window_entropy.cuh"

// Codes of the image's levels, with W/2 rows and columns of no pixel around it, and the table of c log2 c.
template <int W, class Pixel>
__global__ void __launch_bounds__(256) pixel_entropy_codes(const Pixel* __restrict__ x, unsigned short* __restrict__ codes,
                                                           unsigned int* __restrict__ table, float lo, float hi,
                                                           int bins, int rows, int cols, int pitch) {
    if (blockIdx.x == 0 && blockIdx.y == 0)
        for (int c = threadIdx.y * blockDim.x + threadIdx.x; c <= W * W; c += blockDim.x * blockDim.y)
            table[c] = Windows<W>::times_log2(c);
    const int col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (col >= pitch) return;
    for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows + W - 1; row += gridDim.y * blockDim.y) {
        const int i = row - W / 2;
        unsigned short code[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int j = col + k - W / 2;
            const bool inside = i >= 0 && i < rows && j >= 0 && j < cols;
            const float value = inside ? static_cast<float>(__ldg(x + static_cast<long long>(i) * cols + j)) : 0.0f;
            code[k] = inside && !isnan(value) ? level_of(value, lo, hi, bins) * STEP : NONE;
        }
        *reinterpret_cast<ushort4*>(codes + static_cast<long long>(row) * pitch + col) =
            make_ushort4(code[0], code[1], code[2], code[3]);
    }
}

// Each warp slides the windows of 32 COUNT columns down one strip of rows; any grid of at least one warp per such columns.
template <int W>
__global__ void __launch_bounds__(224, 1) pixel_entropy(const unsigned short* __restrict__ codes,
                                                        const unsigned int* __restrict__ table,
                                                        float* __restrict__ entropy, float unit, int rows, int cols,
                                                        int pitch) {
    using In = Windows<W>;
    extern __shared__ unsigned int shared[];
    for (int c = threadIdx.x; c <= In::AREA; c += blockDim.x) shared[c] = c < In::AREA ? table[c + 1] - table[c] : 0;
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int across = (cols + 32 * In::COUNT - 1) / (32 * In::COUNT), strips = gridDim.x * warps / across;
    const int task = blockIdx.x * warps + warp, height = (rows + strips - 1) / strips;
    const int col = In::COUNT * (task % across * 32 + lane);
    int row = task / across * height;
    const int end = min(rows, row + height);
    if (task >= across * strips || col >= cols || row >= end) return;
    Histogram<W> histogram(reinterpret_cast<char*>(shared + In::TABLE) + warp * (NONE + STEP) + lane * 4, shared);
    const unsigned short* at = codes + static_cast<long long>(row) * pitch + col;
    const unsigned short* below = at + static_cast<long long>(W) * pitch;
    Codes<W> entering(at);
#pragma unroll 1
    for (int k = 1; k <= W; ++k) {  // the next row is on its way while one enters
        const Codes<W> in = entering;
        entering = Codes<W>(k < W || row + 1 < end ? at + static_cast<long long>(k) * pitch : at);
        histogram.enter(in);
    }
    float* to = entropy + static_cast<long long>(row) * cols + col;
    Codes<W> leaving(at);
    while (true) {
        float result[In::COUNT];
        histogram.entropies(table, unit, result);
#pragma unroll
        for (int i = 0; i < In::COUNT; ++i)
            if (col + i < cols) __stcs(to + i, result[i]);
        if (++row == end) return;
        to += cols, at += pitch, below += pitch;
        const Codes<W> out = leaving, in = entering;
        if (row + 1 < end) leaving = Codes<W>(at), entering = Codes<W>(below);
        histogram.slide(out, in);
    }
}

// One thread per pixel, its histogram counted afresh in local memory; any window.
template <class Pixel>
__global__ void pixel_entropy_naive(const Pixel* __restrict__ x, float* __restrict__ entropy, float lo, float hi,
                                    int bins, int window, float unit, int rows, int cols) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= rows || j >= cols) return;
    const int top = max(0, i - window / 2), bottom = min(rows, i - window / 2 + window);
    const int left = max(0, j - window / 2), right = min(cols, j - window / 2 + window);
    int counts[256];
    for (int b = 0; b < bins; ++b) counts[b] = 0;
    int n = 0;
    for (int r = top; r < bottom; ++r)
        for (int c = left; c < right; ++c) {
            const float value = static_cast<float>(__ldg(x + static_cast<long long>(r) * cols + c));
            if (isnan(value)) continue;
            ++counts[level_of(value, lo, hi, bins)];
            ++n;
        }
    double total = 0.0;
    for (int b = 0; b < bins; ++b)
        if (counts[b] > 1) total += counts[b] * static_cast<double>(log2f(counts[b]));
    const float bits = n > 0 ? static_cast<float>(log2f(n) - total / n) : 0.0f;
    entropy[static_cast<long long>(i) * cols + j] = bits * unit;
}
