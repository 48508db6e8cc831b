#include "harness/result/contradictions.h"

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace moegauge {
namespace {

// Sums of equal samples may differ from them in the last bits.
constexpr double tolerance = 1e-9;

bool at_most(double low, double high) { return low <= high + tolerance * high; }

struct Named {
  const char* name;
  double value;
};

// Fails at the first of the two where the first is larger.
void require_order(const JsonCursor& cursor, const Named& low, const Named& high) {
  if (at_most(low.value, high.value)) return;
  const std::string most = nlohmann::ordered_json(high.value).dump();
  cursor.at(low.name).fail(std::string(low.name) + " is above " + high.name + ", " + most,
                           std::string(low.name) + " <= " + high.name + " is expected");
}

}  // namespace

void refuse_contradictions(const JsonCursor& cursor, const LatencySummary& latency) {
  const Named min = {"min", latency.min}, p10 = {"p10", latency.p10};
  const Named median = {"median", latency.median}, mean = {"mean", latency.mean};
  const Named p90 = {"p90", latency.p90}, max = {"max", latency.max};
  require_order(cursor, min, p10);
  require_order(cursor, p10, median);
  require_order(cursor, median, p90);
  require_order(cursor, p90, max);
  require_order(cursor, min, mean);
  require_order(cursor, mean, max);
  require_order(cursor, {"ci_low", latency.ci_low}, median);
  require_order(cursor, median, {"ci_high", latency.ci_high});
  for (std::size_t i = 0; i < latency.samples.size(); ++i) {
    const double sample = latency.samples[i];
    if (at_most(latency.min, sample) && at_most(sample, latency.max)) continue;
    cursor.at("samples").items()[i].fail("a sample that is not from min to max",
                                         "min and max are those of the samples");
  }
}

void refuse_contradictions(const JsonCursor& cursor, const ErrorMetrics& metrics) {
  const std::array sizes = {Named{"relative_l2", metrics.relative_l2},
                            Named{"worst_token", metrics.worst_token},
                            Named{"max_scaled", metrics.max_scaled}};
  for (const Named& size : sizes) {
    if (size.value < 0) cursor.at(size.name).fail("a negative error", "an error is at least 0");
  }
  if (metrics.cosine > 1 + tolerance || metrics.cosine < -1 - tolerance) {
    cursor.at("cosine").fail("no cosine", "a cosine is from -1 to 1");
  }
  if (metrics.matched > 1 || metrics.matched < 0) {
    cursor.at("matched").fail("no fraction", "the matched fraction is from 0 to 1");
  }
}

void refuse_contradictions(const JsonCursor& cursor, const Checked& checked) {
  if (checked.tokens <= checked.rows) return;
  cursor.at("tokens").fail("more distinct rows than were compared", "tokens <= rows is expected");
}

void refuse_contradictions(const JsonCursor& cursor, const Comparison& comparison) {
  const Named ratio = {"ratio", comparison.ratio};
  require_order(cursor, {"ci_low", comparison.ci_low}, ratio);
  require_order(cursor, ratio, {"ci_high", comparison.ci_high});
}

}  // namespace moegauge
