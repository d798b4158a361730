"""Arrays with a margin on both sides, for interpreters that write to memory by address: writes outside are found."""

from collections.abc import Sequence

import numpy as np

_MARGIN = 1 << 16  # bytes
_CANARY = 0xA5


class GuardedArrays:
    """Copies of arrays with a margin around each; `complaint` names one outside of which something was written."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._raw = [np.full(2 * _MARGIN + array.nbytes, _CANARY, np.uint8) for array in arrays]
        self.arrays = [self._view(raw, array) for raw, array in zip(self._raw, arrays, strict=True)]

    def complaint(self, names: Sequence[str]) -> str | None:
        """Return what was written outside of an array, with its name; None if nothing was."""
        for name, raw in zip(names, self._raw, strict=True):
            for side, margin in (("before", raw[:_MARGIN]), ("behind", raw[-_MARGIN:])):
                if (margin != _CANARY).any():
                    return f"it writes {side} the end of '{name}'" if side == "behind" else f"it writes before '{name}'"
        return None

    def _view(self, raw: np.ndarray, array: np.ndarray) -> np.ndarray:
        inside = raw[_MARGIN : _MARGIN + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[...] = array
        return inside
