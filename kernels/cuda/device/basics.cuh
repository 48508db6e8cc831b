// Integer types and helpers that device code needs; NVRTC has no host headers.
#pragma once

using uint8 = unsigned char;
using int64 = long long;
