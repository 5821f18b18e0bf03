// What python/torch_mi350/cdna.py needs of C++ and torch does not offer.
#pragma once
#include <pybind11/pybind11.h>

namespace mi350::cdna {
void bind(pybind11::module_& m);
}
