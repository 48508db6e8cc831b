#include "kernels/nvidia/runtime/compiler.h"

#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <memory>
#include <regex>

namespace moegauge::cuda {
namespace {

struct Nvrtc {
  decltype(::nvrtcVersion)* version;
  decltype(::nvrtcGetErrorString)* get_error_string;
  decltype(::nvrtcCreateProgram)* create_program;
  decltype(::nvrtcDestroyProgram)* destroy_program;
  decltype(::nvrtcCompileProgram)* compile_program;
  decltype(::nvrtcGetProgramLogSize)* get_log_size;
  decltype(::nvrtcGetProgramLog)* get_log;
  decltype(::nvrtcGetCUBINSize)* get_cubin_size;
  decltype(::nvrtcGetCUBIN)* get_cubin;
  decltype(::nvrtcAddNameExpression)* add_name_expression;
  decltype(::nvrtcGetLoweredName)* get_lowered_name;
};

Expected<Nvrtc, Missing> open_nvrtc() {
  // The newest first; the plain name is there where the toolkit is installed.
  static constexpr std::array names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  static Expected<SharedLibrary, Missing> library = SharedLibrary::open("NVRTC", names);
  if (!library) return Unexpected{library.error()};
  Nvrtc n = {};
  const bool whole = library->find("nvrtcVersion", n.version) &&
                     library->find("nvrtcGetErrorString", n.get_error_string) &&
                     library->find("nvrtcCreateProgram", n.create_program) &&
                     library->find("nvrtcDestroyProgram", n.destroy_program) &&
                     library->find("nvrtcCompileProgram", n.compile_program) &&
                     library->find("nvrtcGetProgramLogSize", n.get_log_size) &&
                     library->find("nvrtcGetProgramLog", n.get_log) &&
                     library->find("nvrtcGetCUBINSize", n.get_cubin_size) &&
                     library->find("nvrtcGetCUBIN", n.get_cubin) &&
                     library->find("nvrtcAddNameExpression", n.add_name_expression) &&
                     library->find("nvrtcGetLoweredName", n.get_lowered_name);
  if (!whole) return Unexpected{Missing{"NVRTC too old (" + library->name() + " makes no cubins)"}};
  return n;
}

const Expected<Nvrtc, Missing>& nvrtc() {
  static const Expected<Nvrtc, Missing> opened = open_nvrtc();
  return opened;
}

// The first line that says "error", or the first line at all.
std::string first_error(const std::string& log) {
  const auto at = log.find("error");
  if (at == std::string::npos) return log.substr(0, log.find('\n'));
  const auto begin = log.rfind('\n', at) + 1;  // npos + 1 == 0
  return log.substr(begin, log.find('\n', at) - begin);
}

struct Program {
  const Nvrtc& api;
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle != nullptr) api.destroy_program(&handle);
  }
};

}  // namespace

Expected<std::string, Missing> compiler_version() {
  if (!nvrtc()) return Unexpected{nvrtc().error()};
  int major = 0, minor = 0;
  nvrtc()->version(&major, &minor);
  return "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
}

Expected<Cubin, CompileFailure> compile(const CompileRequest& request) {
  if (!nvrtc()) return Unexpected{CompileFailure{nvrtc().error().sentence, ""}};
  const Nvrtc& api = *nvrtc();
  std::vector<const char*> names, texts, options;
  for (const SourceFile& file : request.includes) {
    names.push_back(file.name.c_str());
    texts.push_back(file.text.c_str());
  }
  const std::string arch = "--gpu-architecture=" + request.arch;
  options.push_back(arch.c_str());
  for (const std::string& option : request.options) options.push_back(option.c_str());

  Program program{api};
  const int count = static_cast<int>(names.size());
  nvrtcResult result =
      api.create_program(&program.handle, request.main.text.c_str(), request.main.name.c_str(),
                         count, texts.data(), names.data());
  if (result != NVRTC_SUCCESS) return Unexpected{CompileFailure{api.get_error_string(result), ""}};
  for (const std::string& kernel : request.kernels) {
    api.add_name_expression(program.handle, kernel.c_str());
  }
  result = api.compile_program(program.handle, static_cast<int>(options.size()), options.data());

  Cubin cubin;
  std::size_t size = 0;
  if (api.get_log_size(program.handle, &size) == NVRTC_SUCCESS && size > 1) {
    cubin.log.resize(size);
    api.get_log(program.handle, cubin.log.data());
    cubin.log.resize(size - 1);  // the terminating zero
  }
  if (result != NVRTC_SUCCESS) {
    const std::string said =
        cubin.log.empty() ? api.get_error_string(result) : first_error(cubin.log);
    return Unexpected{CompileFailure{said, cubin.log}};
  }
  if (api.get_cubin_size(program.handle, &size) != NVRTC_SUCCESS || size == 0) {
    return Unexpected{CompileFailure{"no machine code for " + request.arch, cubin.log}};
  }
  for (const std::string& kernel : request.kernels) {
    const char* name = nullptr;
    if (api.get_lowered_name(program.handle, kernel.c_str(), &name) != NVRTC_SUCCESS) {
      return Unexpected{CompileFailure{"no kernel " + kernel + " in the program", cubin.log}};
    }
    cubin.names.emplace_back(name);
  }
  cubin.image.resize(size);
  api.get_cubin(program.handle, cubin.image.data());
  return cubin;
}

ResourceUse resources_in(const std::string& log) {
  ResourceUse use;
  static const std::regex registers(R"(Used (\d+) registers)");
  static const std::regex frame(
      R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
  std::smatch match;
  for (auto at = log.cbegin(); std::regex_search(at, log.cend(), match, registers);
       at = match.suffix().first) {
    use.registers = std::max(use.registers, std::stoi(match[1]));
  }
  for (auto at = log.cbegin(); std::regex_search(at, log.cend(), match, frame);
       at = match.suffix().first) {
    use.stack_bytes = std::max(use.stack_bytes, std::stoi(match[1]));
    use.spill_stores_bytes = std::max(use.spill_stores_bytes, std::stoi(match[2]));
    use.spill_loads_bytes = std::max(use.spill_loads_bytes, std::stoi(match[3]));
  }
  use.serialized_wgmma =
      log.find("C7510") != std::string::npos || log.find("C7511") != std::string::npos ||
      log.find("wgmma.mma_async instructions are serialized") != std::string::npos;
  return use;
}

}  // namespace moegauge::cuda
