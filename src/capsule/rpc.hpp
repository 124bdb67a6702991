// A capsule as a server of the native protocol (docs/protocol.md) for one client: the methods that the commands of
// `muniment` need, on one connection. So `muniment --capsule FILE query` is the command that a daemon answers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "capsule/capsule.hpp"

namespace muniment::capsule {

class Server {
 public:
  // A capsule that could not be opened answers every request with the error.
  explicit Server(Result<std::unique_ptr<Capsule>> capsule) {
    if (capsule) capsule_ = *std::move(capsule);
    if (!capsule) failed_ = std::move(capsule).error();
  }

  // Returns the result as JSON. `raw`: the bytes after the request's line. Errors: not_found for an unknown method.
  Result<std::string> call(std::string_view method, const json::Value& params, std::string raw = {});
  // Bytes that are missing at the end of the file.
  std::uint64_t lost_bytes() const { return capsule_ && !capsule_->is_new() ? capsule_->file().lost_bytes() : 0; }
  // Indexes what was ingested.
  Status finish() { return capsule_ ? capsule_->settle() : success(); }

 private:
  using Params = const json::Value&;
  Result<std::string> ingest(Params params);
  Result<std::string> retrieve(Params params);
  Result<std::string> build_context(Params params);
  Result<std::string> ask(Params params);
  Result<std::string> resolve(Params params);
  Result<std::string> feedback(Params params);
  Result<std::string> log(Params params);
  Result<std::string> list_corpora();
  Result<std::string> list_documents(Params params);
  Result<std::string> document(Params params);
  Result<std::string> history(Params params);
  Result<std::string> retract(Params params);
  Result<std::string> put(Params params, std::string raw);
  Result<retrieval::Question> common_question(Params params);
  Result<std::optional<std::int64_t>> asof_of(Params params) const;
  Status need_file() const;

  std::unique_ptr<Capsule> capsule_;
  Error failed_;                                // without a capsule
  std::map<std::string, std::string> uploads_;  // bytes of files, by the ids that their documents name
};

// Serves requests on a socket until the client closes it, and then indexes what was ingested. Returns an exit status.
int serve(int socket, Server& server);

}  // namespace muniment::capsule
