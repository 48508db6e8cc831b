#include "kernels/cpu/buffer.h"

#include <sys/mman.h>

#include <limits>
#include <new>

namespace moegauge::cpu {

void BufferDeleter::operator()(std::byte* p) const { munmap(p, bytes); }

Buffer allocate(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  // A mapping of whole huge pages starts on a huge-page boundary only by luck: take one more and
  // give the ends back.
  const bool huge = bytes >= kHugePage;
  const std::size_t unit = huge ? kHugePage : 4096;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  const std::size_t mapped = huge ? rounded + kHugePage : rounded;
  void* const raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(raw);
  if (huge) {
    const std::size_t skip =
        (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
    if (skip > 0) munmap(begin, skip);
    begin += skip;
    const std::size_t rest = mapped - skip - rounded;
    if (rest > 0) munmap(begin + rounded, rest);
#ifdef MADV_HUGEPAGE
    madvise(begin, rounded, MADV_HUGEPAGE);
#endif
  }
  return Buffer(begin, BufferDeleter{rounded});
}

void throw_bad_alloc() { throw std::bad_alloc(); }

}  // namespace moegauge::cpu
