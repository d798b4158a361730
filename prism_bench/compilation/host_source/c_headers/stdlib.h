// <stdlib.h> for NVRTC, which has no C library but knows malloc, free and abs.
#pragma once
#include "stddef.h"
