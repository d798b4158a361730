// What nvcc finds in a source that includes nothing, and NVRTC does not: put before a source that NVRTC refuses for one
// of these names, so that all others are compiled as they are.
#include <cmath>
#include <cstdlib>
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
