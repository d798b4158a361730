#include "../pixel/conv2d.cu"
#include "convolution/warpgroup_window.cuh"

// max(W * X, 0) with the cross-correlation of conv2d; NaN stays. Its tiles call `add` with the last tap row when an
// output is complete, which is where the maximum is taken.

template <int K_>
struct RectifiedTaps : Taps<K_> {
    using Taps<K_>::Taps;

    __device__ void add(int u, const float (&x)[Taps<K_>::SPAN], const float (&from)[WIDTH], float (&to)[WIDTH]) const {
        Taps<K_>::add(u, x, from, to);
        if (u == K_ - 1) {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) to[c] = Relu{}(to[c]);
        }
    }
};

template <int K, bool ALIGNED>
__global__ void __launch_bounds__(LANES * WARPS, Taps<K>::BLOCKS)
    fused_conv_relu(const float* __restrict__ x, const float* __restrict__ taps, float* __restrict__ y, int rows,
                    int cols, int out_rows, int out_cols, int k, int stride, int padding) {
    walk_tile<RectifiedTaps<K>, ALIGNED>(RectifiedTaps<K>(taps), x, y, rows, cols, out_rows, out_cols, padding);
}

// Any k, stride and padding: one thread per output.
extern "C" __global__ void fused_conv_relu_any(const float* __restrict__ x, const float* __restrict__ taps,
                                               float* __restrict__ y, int rows, int cols, int out_rows, int out_cols,
                                               int k, int stride, int padding) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= out_cols) return;
    const int left = j * stride - padding;
    for (int i = blockIdx.y * blockDim.y + threadIdx.y; i < out_rows; i += gridDim.y * blockDim.y) {
        const int top = i * stride - padding;
        float sum = 0.0f;
        for (int u = max(0, -top); u < min(k, rows - top); ++u) {
            const float* const row = x + static_cast<long long>(top + u) * cols + left;
            for (int v = max(0, -left); v < min(k, cols - left); ++v)
                sum = fmaf(__ldg(taps + u * k + v), __ldg(row + v), sum);
        }
        y[static_cast<long long>(i) * out_cols + j] = Relu{}(sum);
    }
}

// Images of several channels.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    fused_conv_relu_channels(const float* x, const float* taps, const float* bias, float* y, int channels_in,
                             int channels_out, int groups, int rows, int cols, int out_rows, int out_cols, int k_rows,
                             int k_cols, int stride, int padding, int dilation, long long pixels) {
    const Convolution sizes = {channels_in, channels_out, groups, rows,   cols,    out_rows,
                               out_cols,    k_rows,       k_cols, stride, padding, dilation};
    convolve_channels<T>(sizes, x, taps, bias, y, pixels, Relu{});
}

extern __shared__ __align__(16) float stages[];

// The same on the tensor cores.
template <class T>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT)
    fused_conv_relu_tf32(const float* x, const float* taps, const float* bias, float* y, int channels_in, int channels_out,
                int groups, int rows, int cols, int out_rows, int out_cols, int k_rows, int k_cols, int stride,
                int padding, int dilation, long long pixels) {
    const Convolution sizes = {channels_in, channels_out, groups, rows,   cols,    out_rows,
                               out_cols,    k_rows,       k_cols, stride, padding, dilation};
    convolve_on_tensor_cores<T>(sizes, x, taps, bias, y, pixels, stages, Relu{});
}

// Both with 3 x 3 taps, by windows in shared memory.
template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    fused_conv_relu_window(const float* x, const float* taps, const float* bias, float* y, int channels_in,
                           int channels_out, int rows, int cols, long long pixels) {
    extern __shared__ uint4 on_chip[];
    const WindowSizes sizes = {channels_in, channels_out, rows, cols, pixels};
    T::convolve(sizes, x, taps, bias, y, reinterpret_cast<float*>(on_chip), Relu{});
}

// In half precision, channels last.
template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    fused_conv_relu_half(const __half* x, const __half* taps, const __half* bias, __half* y, int channels_in, int channels_out,
                int groups, int rows, int cols, int out_rows, int out_cols, int k_rows, int k_cols, int stride,
                int padding, int dilation, int batch) {
    extern __shared__ uint4 on_chip[];
    const Convolution sizes = {channels_in, channels_out, groups, rows,   cols,    out_rows,
                               out_cols,    k_rows,       k_cols, stride, padding, dilation};
    HalfConvolution<T>(sizes, x, taps, batch, reinterpret_cast<unsigned short*>(on_chip)).convolve(bias, y, Relu{});
}

// The same with the images as tensor maps, by warpgroup instructions.
template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    fused_conv_relu_half_streamed(__grid_constant__ const TensorMap x, __grid_constant__ const TensorMap taps,
                                  const __half* bias, __grid_constant__ const TensorMap y, int channels_in,
                                  int channels_out, int groups, int rows, int cols, int out_rows, int out_cols, int k_rows,
                                  int k_cols, int stride, int padding, int dilation, int batch) {
    extern __shared__ uint4 on_chip[];
    const Convolution sizes = {channels_in, channels_out, groups, rows,   cols,    out_rows,
                               out_cols,    k_rows,       k_cols, stride, padding, dilation};
    convolve_streamed<T>(sizes, x, taps, bias, y, batch, on_chip, Relu{});
}
