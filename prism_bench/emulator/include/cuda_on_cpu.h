// Included before every kernel: all that a CUDA source finds without including anything.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "cuda_on_cpu/keywords.h"

#include "cuda_on_cpu/interface.h"
#include "cuda_on_cpu/vector_types.h"
#include "cuda_on_cpu/builtins.h"
#include "cuda_on_cpu/integer.h"
#include "cuda_on_cpu/rounding.h"
#include "cuda_on_cpu/math_functions.h"
#include "cuda_on_cpu/loads.h"
#include "cuda_on_cpu/warp_functions.h"
#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/entry.h"
