// What kernels take from the driver's header: tensor maps, by value.
#pragma once

struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
};
using CUtensorMap = CUtensorMap_st;
