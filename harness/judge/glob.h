// Patterns over case ids and their fields: `*` is any run of characters (slashes too), `?` any one,
// everything else itself. Brackets are ordinary characters, because ids of tuned files hold them
// (`block_shape=[128,128]`), so that an id always matches itself.
#pragma once

#include <string_view>

namespace moegauge {

bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace moegauge
