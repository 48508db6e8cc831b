// How much a case's median differs from process to process on a device where nothing changes:
// `moegauge.calibration/1` files, written by `doctor --calibrate`, read by `gate`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

struct CaseCalibration {
  double between = 0;         // standard deviation of ln(median) from process to process
  double within = 0;          // standard error of ln(median) that one process's samples show
  std::size_t processes = 0;  // at least two
};

// By device key, then by case id.
using Calibration = std::map<std::string, std::map<std::string, CaseCalibration>>;

// Of the ok cases that at least two of the results, one a process, hold under one device key.
Calibration calibrate(const std::vector<Result>& processes);
// Puts `newer` in, case by case: what is measured again replaces what was.
void merge_into(Calibration& calibration, const Calibration& newer);

// Throw InputError. Writing replaces the whole file or leaves the old one.
Calibration load_calibration(const std::filesystem::path& file);
void write_calibration(const std::filesystem::path& file, const Calibration& calibration);

}  // namespace moegauge
