// Where the shipped data lies: the folder that holds suites/ and the backends' tuned configs.
#pragma once

#include <filesystem>

namespace moegauge {

// The first of: $MOEGAUGE_ROOT, the folders above the executable, share/moegauge beside an
// installed executable, the source folder that this was built from. Throws InputError if none holds
// suites/.
std::filesystem::path find_root();

}  // namespace moegauge
