// <math.h> for NVRTC, which has its functions but neither the header nor the constants.
#pragma once
#include "../implied_by_nvcc.h"
