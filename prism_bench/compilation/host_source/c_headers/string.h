// <string.h> for NVRTC, which has no C library but knows memcpy and memset.
#pragma once
#include "stddef.h"
