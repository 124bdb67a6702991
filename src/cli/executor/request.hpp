// The command line that a front hands to the executor.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct ExecutorRequest {
  std::string text;                // the words, then the environment, each part ending in NUL
  std::vector<char*> words;        // point into `text`; nullptr is the last
  std::vector<char*> environment;  // likewise
  std::array<Fd, 3> streams;
  Fd folder;
};

// Sends the words, and the environment, standard streams and folder of this process. Errors: unavailable.
Status send_request(int connection, const std::vector<std::string>& words);
// Errors: invalid_argument for a message that is no request.
Result<ExecutorRequest> receive_request(int connection);

}  // namespace muniment::cli
