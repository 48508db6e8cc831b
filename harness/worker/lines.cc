#include "harness/worker/lines.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>

namespace moegauge {

bool write_line(int fd, std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t count = ::write(fd, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return true;
}

Written write_line(int fd, std::string_view line, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  std::string bytes(line);
  bytes += '\n';
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t count = ::write(fd, bytes.data() + written, bytes.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return Written::reader_gone;
    const std::chrono::duration<double, std::milli> left = deadline - Clock::now();
    if (left.count() <= 0) return Written::too_slow;
    pollfd ready{fd, POLLOUT, 0};
    ::poll(&ready, 1, static_cast<int>(std::ceil(left.count())));
  }
  return Written::whole;
}

bool LineReader::take(std::string& line) {
  const std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) return false;
  line.assign(buffer_, 0, end);
  buffer_.erase(0, end + 1);
  return true;
}

LineReader::Event LineReader::read(std::string& line, double seconds, const sigset_t* mask) {
  for (;;) {
    if (take(line)) return Event::line;
    pollfd ready{fd_, POLLIN, 0};
    const double whole = std::floor(seconds);
    const timespec wait{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
    const int count = ::ppoll(&ready, 1, &wait, mask);
    if (count == 0) return Event::waited;
    if (count < 0) return Event::signal;  // EINTR: nothing else can happen to a valid descriptor
    std::array<char, 65536> chunk;
    const ssize_t bytes = ::read(fd_, chunk.data(), chunk.size());
    if (bytes < 0 && errno == EINTR) return Event::signal;
    if (bytes <= 0) return Event::closed;
    buffer_.append(chunk.data(), static_cast<std::size_t>(bytes));
  }
}

bool LineReader::read(std::string& line) {
  for (;;) {
    const Event event = read(line, 3600);
    if (event == Event::line) return true;
    if (event == Event::closed) return false;
  }
}

}  // namespace moegauge
