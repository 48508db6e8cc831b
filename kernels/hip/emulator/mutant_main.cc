// The tests' main, which can run them on kernels from elsewhere: MOEGAUGE_HIP_MUTANT names a shared
// object that mutation_test.py made of spoiled sources.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "kernels/hip/emulator/kernels.h"

namespace {

// False, and why on stderr, where it cannot be had: a test must not pass, or fail, without it.
bool take_mutant(const char* file) {
  void* const library = dlopen(file, RTLD_NOW);
  if (library == nullptr) {
    std::cerr << dlerror() << "\n";
    return false;
  }
  using Kernels = std::vector<moegauge::emulator::Kernel>;
  const auto kernels =
      reinterpret_cast<const Kernels* (*)()>(dlsym(library, "moegauge_mutant_kernels"));
  const auto architecture =
      reinterpret_cast<const char* (*)()>(dlsym(library, "moegauge_mutant_architecture"));
  if (kernels == nullptr || architecture == nullptr) {
    std::cerr << file << " holds no kernels\n";
    return false;
  }
  moegauge::emulator::replace_kernels(architecture(), *kernels());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* const mutant = std::getenv("MOEGAUGE_HIP_MUTANT");
  if (mutant != nullptr && !take_mutant(mutant)) return 2;
  return RUN_ALL_TESTS();
}
