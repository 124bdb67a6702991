// The command line that a front hands to the executor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/process/passed_descriptors.hpp"
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

// A request whose content is not read yet: that is for a process of the caller's user.
struct RequestMessage {
  std::uint32_t version = 0, words = 0;
  PassedMessage passed;
};
RequestMessage receive_request(int connection);
// Errors: invalid_argument for a message that is no request, too_large.
Result<ExecutorRequest> read_request(RequestMessage message);

}  // namespace muniment::cli
