#include <cuda_runtime.h>
#include <vector>

#define RADIUS 3
#define BLOCK_SIZE 128
#define TILE 16
#define IDX(x, y, w) ((y) * (w) + (x))

struct Extent {
  int width;
  int height;
};

__constant__ float c_filter[2 * RADIUS + 1];

__global__ void stencil_1d(const float *in, float *out, int n) {
  __shared__ float temp[BLOCK_SIZE + 2 * RADIUS];
  int g = threadIdx.x + blockIdx.x * blockDim.x;
  int l = threadIdx.x + RADIUS;
  temp[l] = g < n ? in[g] : 0.f;
  if (threadIdx.x < RADIUS) {
    temp[l - RADIUS] = g >= RADIUS && g - RADIUS < n ? in[g - RADIUS] : 0.f;
    temp[l + BLOCK_SIZE] = g + BLOCK_SIZE < n ? in[g + BLOCK_SIZE] : 0.f;
  }
  __syncthreads();
  if (g >= n) return;
  float result = 0.f;
  for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[l + offset];
  out[g] = result;
}

__global__ void conv_constant(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.f;
  for (int k = -RADIUS; k <= RADIUS; k++)
    if (i + k >= 0 && i + k < n) sum += c_filter[k + RADIUS] * in[i + k];
  out[i] = sum;
}

__global__ void jacobi_2d(const double *__restrict__ u, double *__restrict__ v, int nx, int ny) {
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1)
    v[IDX(x, y, nx)] = 0.25 * (u[IDX(x - 1, y, nx)] + u[IDX(x + 1, y, nx)] + u[IDX(x, y - 1, nx)] + u[IDX(x, y + 1, nx)]);
  else if (x < nx && y < ny)
    v[IDX(x, y, nx)] = u[IDX(x, y, nx)];
}

__global__ void blur(const unsigned char *in, unsigned char *out, Extent e) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= e.width || y >= e.height) return;
  int sum = 0, count = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (x + dx >= 0 && x + dx < e.width && y + dy >= 0 && y + dy < e.height) {
        sum += in[(y + dy) * e.width + x + dx];
        count++;
      }
  out[y * e.width + x] = sum / count;
}

void solve(const float *in, float *out, const double *u, double *v, const unsigned char *image, unsigned char *blurred,
           int n, int nx, int ny, std::vector<float> filter) {
  cudaMemcpyToSymbol(c_filter, filter.data(), sizeof(c_filter));
  stencil_1d<<<(n + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(in, out, n);
  conv_constant<<<(n + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(in, out, n);
  dim3 block(TILE, TILE);
  dim3 grid((nx + block.x - 1) / block.x, (ny + block.y - 1) / block.y);
  jacobi_2d<<<grid, block>>>(u, v, nx, ny);
  Extent e{nx, ny};
  blur<<<grid, block>>>(image, blurred, e);
}
