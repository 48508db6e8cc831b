// What the commands that read result files share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/commands/command.h"
#include "harness/result/result_io.h"

namespace moegauge {

// The context's key of a sentence that says who else used the machine while a run lasted.
inline constexpr const char* disturbed_context = "disturbed";

// The result; where the file was cut, what is whole of it and a warning on `err`, and one where the
// run was disturbed. Throws InputError.
LoadedResult load_for_judging(const std::string& file, const Environment& environment);

bool any_ok(const Result& result);
// What `run` ends with: 3 where a case failed, 4 where the machine did or nothing is ok.
int exit_code_of_run(const Result& result);

// For a run whose command line names its backends, as a runner's does that has the device: a case
// whose backend is not here is then `infrastructure`, neither a pass nor a kernel's fault.
void blame_the_machine_for_absent_backends(Result& result);

// 2026-11-30, in UTC: what a policy's dates are held against.
std::string today();

// Pretty-printed; bytes that are no UTF-8 become U+FFFD.
std::string strict_json(const nlohmann::ordered_json& json);

}  // namespace moegauge
