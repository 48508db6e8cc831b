// The rank's layer and scheme that a case is about.
#pragma once

#include <filesystem>
#include <memory>

#include "harness/suite/suite.h"
#include "kernels/backend.h"

namespace moegauge {

// Throws InputError: an unknown model or scheme, a tp that does not divide N, a file of tensors
// that cannot be read or does not fit.
Problem problem_of(const CaseCoordinates& c, const std::filesystem::path& root);

// That of a case. Throws InputError.
std::shared_ptr<const Scheme> scheme_of(const CaseCoordinates& c);

// The folder of the checkpoint that a case with a `layer` takes its weights from.
std::filesystem::path checkpoint_folder(const CaseCoordinates& c);

// The model of a case; of the model "replay", what its tensors say.
Model model_of(const CaseCoordinates& c, const std::filesystem::path& root);

}  // namespace moegauge
