#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cstdio>
namespace cg = cooperative_groups;

#define THREADS 256
#define WARP 32
#define cudaCheck(err) (check_error((err), __FILE__, __LINE__))
static void check_error(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess) printf("%s:%d: %s\n", file, line, cudaGetErrorString(error));
}

__inline__ __device__ float warpReduceSum(float val) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}

__inline__ __device__ float blockReduceSum(float val) {
  static __shared__ float shared[32];
  int lane = threadIdx.x % WARP, wid = threadIdx.x / WARP;
  val = warpReduceSum(val);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / WARP) ? shared[lane] : 0.0f;
  if (wid == 0) val = warpReduceSum(val);
  return val;
}

// Sums of blocks in a tree in shared memory.
__global__ void reduce_tree(const float *g_idata, float *g_odata, unsigned int n) {
  extern __shared__ float sdata[];
  unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = (i < n) ? g_idata[i] : 0.0f;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void reduce_shuffle(const float *in, float *out, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += in[i];
  sum = blockReduceSum(sum);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

__global__ void reduce_rows_cg(const float *__restrict__ in, float *__restrict__ out, int rows, int cols) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= rows) return;
  float best = -3.4e38f;
  for (int c = warp.thread_rank(); c < cols; c += warp.size()) best = fmaxf(best, in[row * cols + c]);
  for (int offset = 16; offset > 0; offset /= 2) best = fmaxf(best, warp.shfl_down(best, offset));
  if (warp.thread_rank() == 0) out[row] = best;
}

__global__ void dot_vec4(const float4 *a, const float4 *b, float *result, int n4) {
  float acc = 0.f;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) {
    float4 u = a[i], v = b[i];
    acc = u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  acc = blockReduceSum(acc);
  if (threadIdx.x == 0) atomicAdd(result, acc);
}

void launch_all(const float *d_in, float *d_out, float *d_one, int n, int rows, int cols) {
  int blocks = (n + THREADS - 1) / THREADS;
  int smem = THREADS * sizeof(float);
  reduce_tree<<<blocks, THREADS, smem>>>(d_in, d_out, n);
  reduce_shuffle<<<min(blocks, 1024), THREADS>>>(d_in, d_one, n);
  int warps_per_block = THREADS / 32;
  dim3 grid((rows + warps_per_block - 1) / warps_per_block);
  reduce_rows_cg<<<grid, dim3(THREADS)>>>(d_in, d_out, rows, cols);
  int n4 = n / 4;
  dot_vec4<<<(n4 + 127) / 128, 128>>>((const float4 *)d_in, (const float4 *)d_in, d_one, n4);
  cudaCheck(cudaGetLastError());
}
