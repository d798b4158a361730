#pragma once
#include "inner.cuh"

__device__ inline float scaled(float x) { return FACTOR * x; }
