#include <assert.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

const int TILE_DIM = 32;
const int BLOCK_ROWS = 8;

__global__ void copy(float *odata, const float *idata, int width, int height) {
  int xIndex = blockIdx.x * TILE_DIM + threadIdx.x;
  int yIndex = blockIdx.y * TILE_DIM + threadIdx.y;
  int index = xIndex + width * yIndex;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
    if (xIndex < width && yIndex + i < height) odata[index + i * width] = idata[index + i * width];
}

__global__ void transposeNaive(float *odata, const float *idata, int width, int height) {
  int xIndex = blockIdx.x * TILE_DIM + threadIdx.x;
  int yIndex = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS) odata[xIndex * height + (yIndex + i)] = idata[(yIndex + i) * width + xIndex];
}

__global__ void transposeNoBankConflicts(float *odata, const float *idata, int width, int height) {
  __shared__ float tile[TILE_DIM][TILE_DIM + 1];
  int xIndex = blockIdx.x * TILE_DIM + threadIdx.x;
  int yIndex = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS) tile[threadIdx.y + i][threadIdx.x] = idata[(yIndex + i) * width + xIndex];
  __syncthreads();
  xIndex = blockIdx.y * TILE_DIM + threadIdx.x;
  yIndex = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS) odata[(yIndex + i) * height + xIndex] = tile[threadIdx.x][threadIdx.y + i];
}

__global__ void flipRows(int *data, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y;
  if (x >= width / 2) return;
  int *row = data + y * width;
  const int kept = row[x];
  row[x] = row[width - 1 - x];
  row[width - 1 - x] = kept;
}

int main(int argc, char **argv) {
  int size_x = 1024, size_y = 512;
  void (*kernel)(float *, const float *, int, int);
  dim3 grid(size_x / TILE_DIM, size_y / TILE_DIM), threads(TILE_DIM, BLOCK_ROWS);
  float *d_idata, *d_odata;
  int *d_flipped;
  cudaMalloc((void **)&d_idata, size_x * size_y * sizeof(float));
  cudaMalloc((void **)&d_odata, size_x * size_y * sizeof(float));
  cudaMalloc((void **)&d_flipped, size_x * size_y * sizeof(int));
  for (int k = 0; k < 3; k++) {
    switch (k) {
      case 0: kernel = &copy; break;
      case 1: kernel = &transposeNaive; break;
      default: kernel = &transposeNoBankConflicts; break;
    }
    kernel<<<grid, threads>>>(d_odata, d_idata, size_x, size_y);
  }
  copy<<<grid, threads>>>(d_odata, d_idata, size_x, size_y);
  transposeNaive<<<grid, threads>>>(d_odata, d_idata, size_x, size_y);
  transposeNoBankConflicts<<<grid, threads>>>(d_odata, d_idata, size_x, size_y);
  dim3 flipGrid((size_x / 2 + 127) / 128, size_y, 1);
  flipRows<<<flipGrid, 128>>>(d_flipped, size_x, size_y);
  return 0;
}
