// Exports more than its entry; linked without the version script.
#include "descriptor.hpp"

BAD_ENTRY(bad::descriptor())
extern "C" __attribute__((visibility("default"))) int helper_that_leaked() { return 1; }
