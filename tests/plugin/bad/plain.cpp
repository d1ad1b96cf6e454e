// Keeps every rule of the C interface; what is wrong lies in its manifest, its name or its file.
#include "descriptor.hpp"

BAD_ENTRY(bad::descriptor())
