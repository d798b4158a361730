"""C++ types of kernel parameters, as NumPy names them."""

_DTYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half __half at::Half c10::Half",
    "bool": "bool",
    "int8": "int8_t char|signed",
    "uint8": "uint8_t char|unsigned std::byte byte uchar",
    "int16": "int16_t short int|short",
    "uint16": "uint16_t short|unsigned int|short|unsigned",
    "int32": "int int32_t signed int|signed",
    "uint32": "uint32_t unsigned int|unsigned uint unsigned|int",
    "int64": "int64_t long long|long int|long int|long|long ptrdiff_t",
    "uint64": "uint64_t size_t long|unsigned long|long|unsigned int|long|unsigned int|long|long|unsigned",
    "complex64": "cuFloatComplex cuComplex float2|complex",
    "complex128": "cuDoubleComplex",
}
_BY_NAME = {
    tuple(sorted(name.split("|"))): dtype for dtype, names in _DTYPES.items() for name in names.split()
}  # fmt: skip
_VECTORS = {
    f"{base}{lanes}": dtype
    for base, dtype in (("float", "float32"), ("double", "float64"), ("int", "int32"), ("uint", "uint32"),
                        ("half", "float16"), ("__half", "float16"), ("char", "int8"), ("uchar", "uint8"))
    for lanes in (2, 3, 4)
}  # fmt: skip
_DROPPED = {"const", "volatile", "__restrict__", "__restrict", "restrict", "register", "static", "struct", "typename"}


def dtype_of(type_text: str) -> str | None:
    """Return NumPy's name of a C++ scalar type or of a vector type's elements; None for any other type."""
    plain = type_text.replace("*", " ").replace("&", " ").replace("std::", "")
    words = [word for word in plain.split() if word not in _DROPPED]
    if len(words) == 1 and words[0] in _VECTORS:
        return _VECTORS[words[0]]
    return _BY_NAME.get(tuple(sorted(words)))
