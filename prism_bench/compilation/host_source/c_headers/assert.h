// <assert.h> for NVRTC, which has no C library but knows assert.
#pragma once
