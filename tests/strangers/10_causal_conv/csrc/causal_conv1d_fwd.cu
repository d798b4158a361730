#include <c10/cuda/CUDAException.h>
#include "causal_conv1d.h"

__device__ __forceinline__ float silu(float x) { return x / (1.0f + __expf(-x)); }

template <int kNThreads_, int kWidth_>
struct Causal_conv1d_traits {
  static constexpr int kNThreads = kNThreads_;
  static constexpr int kWidth = kWidth_;
};

template <int kNThreads, int kWidth>
__global__ __launch_bounds__(kNThreads) void causal_conv1d_fwd_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                                                                      const float *__restrict__ bias, float *__restrict__ out,
                                                                      int dim, int seqlen) {
  const int batch_id = blockIdx.x, channel_id = blockIdx.y;
  const float *x_row = x + (batch_id * dim + channel_id) * seqlen;
  float *out_row = out + (batch_id * dim + channel_id) * seqlen;
  float weight_vals[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) weight_vals[i] = weight[channel_id * kWidth + i];
  for (int t = threadIdx.x; t < seqlen; t += kNThreads) {
    float value = bias[channel_id];
#pragma unroll
    for (int w = 0; w < kWidth; ++w) {
      const int from = t - (kWidth - 1 - w);
      if (from >= 0) value += weight_vals[w] * x_row[from];
    }
    out_row[t] = silu(value);
  }
}

template <int kWidth>
__global__ void causal_conv1d_update_kernel(float *conv_state, const float *x, const float *weight, float *out, int batch, int dim) {
  const int channel = blockIdx.y * 64 + threadIdx.x;
  if (channel >= dim) return;
  float *state = conv_state + (blockIdx.x * dim + channel) * kWidth;
  float value = 0.f;
  for (int w = 0; w < kWidth - 1; ++w) {
    state[w] = state[w + 1];
    value += state[w] * weight[channel * kWidth + w];
  }
  state[kWidth - 1] = x[blockIdx.x * dim + channel];
  out[blockIdx.x * dim + channel] = value + state[kWidth - 1] * weight[channel * kWidth + kWidth - 1];
}

__global__ void channel_last_kernel(const float *x, float *out, int channels, int seqlen) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y * blockDim.y + threadIdx.y;
  if (t < seqlen && c < channels) out[t * channels + c] = x[c * seqlen + t];
}

__global__ void conv_params_kernel(ConvShape params, const float *x, const float *weight, float *out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= params.seqlen) return;
  for (int row = 0; row < params.batch * params.dim; ++row) {
    float value = 0.f;
    for (int w = 0; w < params.width; ++w)
      if (t - w >= 0) value += x[row * params.seqlen + t - w] * weight[(row % params.dim) * params.width + w];
    out[row * params.seqlen + t] = params.silu_activation ? silu(value) : value;
  }
}

template <int kNThreads, int kWidth>
void causal_conv1d_fwd_launch(const float *x, const float *weight, const float *bias, float *out, int batch, int dim, int seqlen,
                              cudaStream_t stream) {
  using Ktraits = Causal_conv1d_traits<kNThreads, kWidth>;
  dim3 grid(batch, dim);
  auto kernel = &causal_conv1d_fwd_kernel<128, 4>;
  kernel<<<grid, Ktraits::kNThreads, 0, stream>>>(x, weight, bias, out, dim, seqlen);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void causal_conv1d_fwd_cuda(const float *x, const float *weight, const float *bias, float *out, int batch, int dim, int seqlen,
                            cudaStream_t stream) {
  causal_conv1d_fwd_launch<128, 4>(x, weight, bias, out, batch, dim, seqlen, stream);
}

void causal_conv1d_update_cuda(float *conv_state, const float *x, const float *weight, float *out, int batch, int dim) {
  dim3 grid(batch, (dim + 63) / 64);
  causal_conv1d_update_kernel<4><<<grid, 64>>>(conv_state, x, weight, out, batch, dim);
}

void channel_last_cuda(const float *x, float *out, int channels, int seqlen) {
  dim3 Dg((seqlen + 31) / 32, (channels + 7) / 8, 1), Db(32, 8, 1);
  channel_last_kernel<<<Dg, Db>>>(x, out, channels, seqlen);
}

void conv_params_cuda(ConvShape &params, const float *x, const float *weight, float *out) {
  conv_params_kernel<<<(params.seqlen + 127) / 128, 128>>>(params, x, weight, out);
}
