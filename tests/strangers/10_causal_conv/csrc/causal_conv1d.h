#pragma once

struct ConvShape {
  int batch, dim, seqlen, width;
  bool silu_activation;
};
