// Registers the device guard of cdna.
#pragma once

namespace mi350::cdna {
void install_guard();
}
