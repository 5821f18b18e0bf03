// Python functions of the cdna device.
#include "cdna/bindings.h"

#include <torch/csrc/Generator.h>

#include "cdna/device.h"
#include "cdna/generator.h"

namespace py = pybind11;

namespace mi350::cdna {

void bind(py::module_& m) {
  m.def("cdna_device_count", [] { return int(device_count()); });
  m.def("cdna_attribute", &runtime::emulator_attribute);  // hipDeviceAttribute_t, device
  m.def("cdna_used", &used);
  m.def("cdna_in_bad_fork", &in_bad_fork);
  m.def("cdna_default_generator", [](int index) {
    const at::Generator& generator = default_generator(static_cast<c10::DeviceIndex>(index));
    return py::reinterpret_steal<py::object>(THPGenerator_Wrap(generator));
  });
}

}  // namespace mi350::cdna
