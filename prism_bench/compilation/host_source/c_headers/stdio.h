// <stdio.h> for NVRTC, which has no C library but knows printf.
#pragma once
#include "stddef.h"
