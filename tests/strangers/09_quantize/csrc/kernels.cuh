#pragma once
#include <cuda_fp16.h>
#include <stdint.h>

template <int THREADS>
__global__ void kAbsMaxRows(const float* __restrict__ A, float* __restrict__ absmax, int rows, int cols);
__global__ void kQuantizeRows(const float* A, const float* absmax, int8_t* out, int rows, int cols);
__global__ void kDequantize(const int8_t* __restrict__ A, const float* __restrict__ absmax, half* __restrict__ out, int rows, int cols);
__global__ void kPack4bit(const uint8_t* values, uint8_t* packed, int n);
__global__ void kUnpack4bit(const uint8_t* packed, const float* code, float* out, int n);
