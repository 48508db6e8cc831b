// Bad input from outside (a file, an option): the one exception that library code throws. The
// command line turns it into one line and exit code 2; nothing else catches it to go on silently.
#pragma once

#include <stdexcept>
#include <string>

namespace moegauge {

class InputError : public std::runtime_error {
 public:
  // `where`: file, file:line or file:/json/pointer (or an option, "--tokens"). `wrong`: what is
  // wrong. `right`: what would be right. what() is "where: wrong; right".
  InputError(const std::string& where, const std::string& wrong, const std::string& right)
      : std::runtime_error(where + ": " + wrong + (right.empty() ? "" : "; " + right)) {}
};

}  // namespace moegauge
