// What this backend was compiled from, for the identity of its kernels.
#pragma once

#include <string_view>

namespace moegauge::cpu {

// 16 hex digits of a SHA-256 over the sources of this folder and of the thread pool, the compiler
// and its flags, worked out when they are built (code_hash.cmake). No path of the machine is in it.
std::string_view code_hash();

}  // namespace moegauge::cpu
