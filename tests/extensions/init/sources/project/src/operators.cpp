#include <torch/extension.h>

torch::Tensor scaled_add(torch::Tensor x, torch::Tensor y, double alpha);

TORCH_LIBRARY(mylib, m) {
    m.def("scaled_add(Tensor x, Tensor y, float alpha=1.0) -> Tensor", &scaled_add);
    m.def("norm(Tensor x, "
          "float eps) -> Tensor");
    m.def(make_schema());
}

TORCH_LIBRARY_FRAGMENT(mylib, m) { m.def("other::twice", &twice); }
