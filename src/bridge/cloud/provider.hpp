// The call of a cloud service with OpenAI's API: the key, the child process that makes the call, and its reply.
//
// The daemon connects; a child of its own does TLS and HTTP over the connected socket. The sandbox refuses the child
// every further socket, connection, file and process, so a compromised TLS library or a hostile server reaches nothing
// but the one server, and the child has nothing but the question and the key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/http.hpp"
#include "base/process/sandbox.hpp"
#include "base/process/spawn.hpp"
#include "base/result.hpp"
#include "bridge/sanitiser.hpp"

namespace muniment::bridge {

inline constexpr std::string_view key_name = "OPENAI_API_KEY";

// A key, overwritten when it is destroyed.
class ApiKey {
 public:
  explicit ApiKey(std::string text) : text_(std::move(text)) {}
  ~ApiKey();
  ApiKey(ApiKey&& other) noexcept { text_.swap(other.text_); }
  ApiKey& operator=(ApiKey&&) = delete;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Returns the key from the environment, otherwise from `folder`/.env. Errors: not_found; denied if other users may read
// the file; invalid_argument for a key with white space or control characters, and for one that is too long.
Result<ApiKey> read_key(const std::string& folder, const char* from_environment);

struct ProviderCall {
  std::string url;
  std::string body;
  std::string ca_pem;  // certificates that may sign the server's
};

// Returns the URL of the API: a URL without a path gets /v1/chat/completions.
std::string api_url(const std::string& url);
// Returns the request's body.
std::string request_body(const std::string& model, std::string_view prompt);
// Connects, and sends the request through a child. Returns any reply within its limits. Errors: unavailable,
// deadline_exceeded, denied for a certificate that does not match, too_large.
Result<HttpAnswer> call_provider(const ProviderCall& call, const ApiKey& key, Deadline deadline,
                                 const std::vector<std::string>& command = {this_program, "--cloud-child"});
// Returns the text of a reply. Errors: corrupt for a reply without one; too_large.
Result<std::string> text_of_reply(const std::string& body);

// A reply that may be stored and shown: without control characters, terminal sequences and pointers, with the
// sanitiser's findings replaced.
struct SafeReply {
  std::string text;
  std::size_t redactions = 0;
};
SafeReply safe_reply(std::string text, Sanitiser& sanitiser);

// The child's side: a channel to the daemon at descriptor 3, the connected socket at 4. Returns the exit status.
int serve_cloud(int channel, int connection);
// The rules that the child enters.
SandboxPolicy cloud_policy();

}  // namespace muniment::bridge
