"""Resources as ptxas prints them."""

from prism_bench.compilation.cubin import Resources, resources

LOG = """ptxas info    : 0 bytes gmem, 24 bytes cmem[4]
ptxas info    : Compiling entry function '_Z4wideILi3EEvPf' for 'sm_90'
ptxas info    : Function properties for _Z4wideILi3EEvPf
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 1.234 ms
ptxas info    : Compiling entry function 'scale' for 'sm_90'
ptxas info    : Function properties for scale
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 548 bytes cmem[0]
"""


def test_each_entry_has_its_own_resources():
    assert {"_Z4wideILi3EEvPf": Resources(255, 16, 12, 8, 4096, 1), "scale": Resources(8, 0, 0, 0, 0, 0)} == resources(
        LOG
    )


def test_an_empty_log_has_none():
    assert {} == resources("")
