#include "conv2d.cu"
#include "fused_conv_entropy_segment.cu"
#include "image_segmentation.cu"
#include "pixel_entropy.cu"
