#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <float.h>

namespace attn {

// x: [tokens, heads * head_size]; cos and sin: [tokens, head_size / 2].
__global__ void rotary_embedding_kernel(float* __restrict__ x, const float* __restrict__ cos, const float* __restrict__ sin,
                                        const int num_heads, const int head_size) {
  const int token = blockIdx.x;
  const int half = head_size / 2;
  for (int i = threadIdx.x; i < num_heads * half; i += blockDim.x) {
    const int head = i / half, r = i % half;
    float* p = x + (token * num_heads + head) * head_size;
    const float a = p[r], b = p[r + half], c = cos[token * half + r], s = sin[token * half + r];
    p[r] = a * c - b * s;
    p[r + half] = b * c + a * s;
  }
}

__global__ void attention_scores(const float* q, const float* k, float* att, int T, int HS, float scale) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= T || j >= T) return;
  float value = 0.0f;
  for (int c = 0; c < HS; c++) value += q[i * HS + c] * k[j * HS + c];
  att[i * T + j] = j <= i ? value * scale : -FLT_MAX;
}

__global__ void attention_softmax(float* att, int T) {
  extern __shared__ float red[];
  float* row = att + blockIdx.x * T;
  float best = -FLT_MAX;
  for (int j = threadIdx.x; j < T; j += blockDim.x) best = fmaxf(best, row[j]);
  red[threadIdx.x] = best;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + s]);
    __syncthreads();
  }
  best = red[0];
  __syncthreads();
  float sum = 0.f;
  for (int j = threadIdx.x; j < T; j += blockDim.x) sum += expf(row[j] - best);
  red[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
    __syncthreads();
  }
  for (int j = threadIdx.x; j < T; j += blockDim.x) row[j] = expf(row[j] - best) / red[0];
}

__global__ void reshape_and_cache(const float* __restrict__ key, float* __restrict__ key_cache, const int* __restrict__ slot_mapping,
                                  const int hidden) {
  const int token = blockIdx.x;
  const int slot = slot_mapping[token];
  if (slot < 0) return;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) key_cache[slot * hidden + i] = key[token * hidden + i];
}

__global__ void to_bf16(const float* in, __nv_bfloat16* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2bfloat16(in[i]);
}

void attention(float* x, float* cos, float* sin, float* q, float* k, float* att, float* cache, int* slots, __nv_bfloat16* low,
               int num_tokens, int num_heads, int head_size, int T, int HS) {
  dim3 grid(num_tokens);
  dim3 block(std::min(num_heads * head_size / 2, 512));
  rotary_embedding_kernel<<<grid, block>>>(x, cos, sin, num_heads, head_size);
  dim3 tile(16, 16);
  dim3 tiles((T + tile.x - 1) / tile.x, (T + tile.y - 1) / tile.y);
  attention_scores<<<tiles, tile>>>(q, k, att, T, HS, 1.0f / sqrtf(HS));
  attention_softmax<<<T, 128, 128 * sizeof(float)>>>(att, T);
  const int hidden = num_heads * head_size;
  reshape_and_cache<<<num_tokens, std::min(hidden, 512)>>>(k, cache, slots, hidden);
  to_bf16<<<(T * T + 255) / 256, 256>>>(att, low, T * T);
}

}  // namespace attn
