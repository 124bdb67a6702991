#include "cli/executor/request.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/files/memory_file.hpp"
#include "base/limits.hpp"

namespace muniment::cli {
namespace {

constexpr std::uint32_t request_version = 1;

struct Header {
  std::uint32_t version = request_version;
  std::uint32_t words = 0;
};

Error no_request() { return Error(Errc::invalid_argument, "the request of another version of muniment, or of none"); }

Error too_large() { return Error(Errc::too_large, "the command line and the environment are too large"); }

Result<std::string> read_whole(const Fd& file) {
  struct stat about {};
  // Only memory has seals. Nobody changes or delays what is read from it.
  constexpr int sealed = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & sealed) != sealed || ::fstat(file.get(), &about) != 0) return no_request();
  if (static_cast<std::size_t>(about.st_size) > limits::executor_request_bytes_max) return too_large();
  std::string text;
  text.reserve(64);  // outside the string itself, so that a move keeps the addresses
  text.resize(static_cast<std::size_t>(about.st_size));
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t got = ::pread(file.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return no_request();
    at += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace

Status send_request(int connection, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  for (char** variable = environ; *variable != nullptr; ++variable) text.append(*variable).push_back('\0');
  if (text.size() > limits::executor_request_bytes_max) return too_large();
  ASSIGN_OR_RETURN(const Fd file, memory_file("command", text));
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
  const Fd folder(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return Error(Errc::unavailable, std::string("the working folder: ") + std::strerror(errno));
  Header header;
  header.words = static_cast<std::uint32_t>(words.size());
  const int passed[] = {file.get(), STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, folder.get()};
  if (!send_message(connection, {reinterpret_cast<const char*>(&header), sizeof header}, passed))
    return Error(Errc::unavailable, std::string("the executor: ") + std::strerror(errno));
  return success();
}

RequestMessage receive_request(int connection) {
  Header header;
  RequestMessage message;
  message.passed = receive_message(connection, {reinterpret_cast<char*>(&header), sizeof header});
  message.version = header.version;
  message.words = header.words;
  return message;
}

Result<ExecutorRequest> read_request(RequestMessage message) {
  std::vector<Fd>& passed = message.passed.descriptors;
  if (message.passed.size != sizeof(Header) || passed.size() != 5 || message.version != request_version)
    return no_request();
  ExecutorRequest request;
  ASSIGN_OR_RETURN(request.text, read_whole(passed[0]));
  if (request.text.empty() || request.text.back() != '\0') return no_request();
  for (std::size_t at = 0; at < request.text.size(); at += std::strlen(&request.text[at]) + 1) {
    if (request.words.size() + request.environment.size() == limits::executor_request_words_max) return too_large();
    std::vector<char*>& list = request.words.size() < message.words ? request.words : request.environment;
    list.push_back(&request.text[at]);
  }
  if (request.words.empty()) return no_request();
  request.words.push_back(nullptr);
  request.environment.push_back(nullptr);
  for (std::size_t i = 0; i < request.streams.size(); ++i) request.streams[i] = std::move(passed[i + 1]);
  request.folder = std::move(passed[4]);
  return request;
}

}  // namespace muniment::cli
