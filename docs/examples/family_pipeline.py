"""Kernels of several families one after the other, data staying where it is: infrared frames with planted hot spots.

An image is smoothed; then its entropy, its topology and its segments follow. Every stage is compared
with its reference on the inputs that it really got, and the planted spots must be found. Without a GPU the frame is
small.
"""

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.pipelines.definitions import pipelines
from prism_bench.extensions.pipelines.pipeline import Prepared
from prism_bench.extensions.pipelines.session import check_results, check_stages


def opened():
    """Return the GPU with a frame of full size, else the emulator with a small one."""
    try:
        return open_backend("cuda"), "S0"
    except BackendUnavailable:
        return open_backend("emulator"), "small"


def main() -> None:
    """Run the example."""
    backend, label = opened()
    (image,) = pipelines(["image"])
    print(f"{image.meaning}, on {backend.name}")
    with Prepared(image, label, discover(), backend) as prepared:
        print(f"{prepared.axes['rows']} x {prepared.axes['cols']}, {prepared.axes['spots']} spots planted")
        for entry in check_stages(prepared):
            print(f"{entry['output']:18} {'right' if entry['passed'] else 'WRONG'}")
        (found,) = check_results(prepared, "one_stream")
        print("every spot was found" if found["passed"] else found["error"])


if __name__ == "__main__":
    main()
