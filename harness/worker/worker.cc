#include "harness/worker/worker.h"

#include <sys/prctl.h>

#include <string>

#include "harness/root.h"

namespace moegauge {

void serve(const WorkerPipes& pipes, std::span<const Backend* const> backends) {
  ::prctl(PR_SET_NAME, "moegauge-worker");  // started as /proc/self/exe, it would show as "exe"
  InFlightPage* page = map_page(pipes.page);
  LineReader requests(pipes.requests);
  std::string line;
  if (!requests.read(line)) return;
  const Job job = job_from(line);

  const auto in_flight = [page](std::size_t index, Phase phase) {
    page->phase.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
    page->case_index.store(static_cast<std::uint32_t>(index), std::memory_order_release);
  };
  const auto session = make_session({job.cases, find_root(), backends, job.settings, in_flight});
  while (requests.read(line)) {
    const Request request = request_from(line);
    if (request.kind == Request::Kind::compile) {
      session->compile_ahead(request.members);
      write_line(pipes.replies, to_line(Reply{.point_done = true}));
      continue;
    }
    const auto result = session->measure(request.members, request.settings);
    for (const auto& [index, record, launched] : result.records) {
      write_line(pipes.replies,
                 to_line(Reply{.index = index, .record = record, .launched = launched}));
    }
    write_line(pipes.replies, to_line(Reply{.point_done = true, .tainted = result.tainted}));
    if (result.tainted) return;
  }
}

}  // namespace moegauge
