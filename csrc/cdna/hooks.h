// Registers the hooks by which torch asks a device for its generator, pinned memory and storage resizing.
#pragma once

namespace mi350::cdna {
void install_hooks();
}
