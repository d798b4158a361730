// <stdbool.h> for NVRTC, which has no C library; bool is a word of C++.
#pragma once
#define __bool_true_false_are_defined 1
