// What the architectures differ in, in one place. Nothing else in the kernels asks for one by name.
// Sources: the instruction set manuals of CDNA 3, CDNA 4 and RDNA 4.
#pragma once

namespace moe {

struct Gfx942 {
  static constexpr int kLanes = 64;           // of a wave
  static constexpr bool kMfma = true;         // MFMA; false: WMMA
  static constexpr bool kFnuz = true;         // E4M3 as FNUZ; false: as OCP
  static constexpr bool kLongHalf = false;    // matrix instructions with 16 bytes of halves a lane
  static constexpr int kSharedBytes = 65536;  // of a block
  static constexpr int kDies = 8;  // blocks go to these in turn, each with an L2 of its own
};

struct Gfx950 {
  static constexpr int kLanes = 64;
  static constexpr bool kMfma = true;
  static constexpr bool kFnuz = false;
  static constexpr bool kLongHalf = true;
  static constexpr int kSharedBytes = 163840;
  static constexpr int kDies = 8;
};

struct Gfx1201 {
  static constexpr int kLanes = 32;
  static constexpr bool kMfma = false;
  static constexpr bool kFnuz = false;
  static constexpr bool kLongHalf = true;
  static constexpr int kSharedBytes = 65536;
  static constexpr int kDies = 1;
};

#if defined(__gfx942__)
using ThisArch = Gfx942;
#elif defined(__gfx950__)
using ThisArch = Gfx950;
#elif defined(__gfx1201__)
using ThisArch = Gfx1201;
#endif

}  // namespace moe
