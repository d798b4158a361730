from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="activations",
    ext_modules=[CUDAExtension("activations", ["csrc/activations_kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
