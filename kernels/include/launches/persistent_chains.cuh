#pragma once

// Every kernel of the chains, to be served.
#include "launches/virtual_grid.cuh"

#include "../../active_inference/active_inference_chain.cu"
#include "../../linear_algebra/linear_algebra_chain.cu"
#include "../../pixel/image_chain.cu"
#include "../../transfer_entropy/transfer_entropy_chain.cu"
