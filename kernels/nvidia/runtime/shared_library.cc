#include "kernels/nvidia/runtime/shared_library.h"

#include <dlfcn.h>

namespace moegauge::cuda {

Expected<SharedLibrary, Missing> SharedLibrary::open(const char* what,
                                                     std::span<const char* const> names) {
  for (const char* name : names) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, name);
  }
  // The loader's own words tell a missing file from a broken one (wrong architecture, missing
  // dependency); only the first is said in short.
  const std::string first = names.front();
  dlopen(first.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* said = dlerror();
  const std::string reason = said == nullptr ? "" : said;
  if (reason.find("No such file") != std::string::npos) {
    return Unexpected{Missing{"no " + std::string(what) + " (" + first + " not found)"}};
  }
  return Unexpected{Missing{"no " + std::string(what) + " (" + reason + ")"}};
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* SharedLibrary::find_symbol(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace moegauge::cuda
