#include "scan.cuh"

using namespace scan;
static constexpr int kThreads = 256;
static int cdiv(int a, int b) { return (a + b - 1) / b; }

int main() {
  int n = 10000;
  int *in, *out, *totals, *flags;
  float* values;
  cudaMalloc(&in, n * sizeof(int));
  cudaMalloc(&out, n * sizeof(int));
  cudaMalloc(&flags, n * sizeof(int));
  cudaMalloc(&values, n * sizeof(float));
  const int blocks = cdiv(n, kThreads);
  cudaMalloc(&totals, blocks * sizeof(int));
  scan_blocks<int, kThreads><<<blocks, kThreads>>>(in, out, totals, n);
  add_offsets<int><<<blocks, kThreads>>>(out, totals, n);
  const int m = 512;
  exclusive_hillis<<<1, m, 2 * m * sizeof(int)>>>(in, out, m);
  int sms = 80;
  mark_positive<<<8 * sms, 256>>>(values, flags, n);
  return 0;
}
