// A capsule as a server of the native protocol (docs/protocol.md) for one client: the methods that the commands of
// `muniment` need, on one connection. So `muniment --capsule FILE query` is the command that a daemon answers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/schema.hpp"
#include "capsule/capsule.hpp"

namespace muniment::capsule {

class Server {
 public:
  // A capsule that could not be opened answers every request with the error. `folders`: those whose files a document
  // may name by its path.
  explicit Server(std::string path, std::vector<std::string> folders = {})
      : path_(std::move(path)), folders_(std::move(folders)) {
    open();
  }

  // Returns the result as JSON. `raw`: the bytes after the request's line. Errors: not_found for an unknown method.
  Result<std::string> call(std::string_view method, const json::Value& params, std::string raw = {});
  // Bytes that are missing at the end of the file.
  std::uint64_t lost_bytes() const { return capsule_ && !capsule_->is_new() ? capsule_->file().lost_bytes() : 0; }
  // Indexes what was ingested.
  Status finish() { return capsule_ ? capsule_->settle() : success(); }
  // Between two requests of a long session: lets other processes write, and reads what they wrote.
  void refresh() {
    if (!capsule_ || capsule_->is_stale()) open();
  }
  // The methods that a host's model may call through a tool.
  static std::vector<std::string_view> methods_of_tools();

 private:
  using Params = const json::Value&;
  struct Method;
  static std::span<const Method> methods();
  void open();
  Status check(const Method& method, Params params);
  Result<std::string> ingest(Params params);
  Result<std::string> retrieve(Params params);
  Result<std::string> build_context(Params params);
  Result<std::string> ask(Params params);
  Result<std::string> resolve(Params params);
  Result<std::string> feedback(Params params);
  Result<std::string> log(Params params);
  Result<std::string> list_log(Params params);
  Result<std::string> list_corpora(Params params);
  Result<std::string> list_documents(Params params);
  Result<std::string> document(Params params);
  Result<std::string> history(Params params);
  Result<std::string> retract(Params params);
  Result<std::string> put(Params params);
  Result<std::string> get_config(Params params);
  Result<std::string> status(Params params);
  Result<std::string> start_run(Params params);
  Result<std::string> end_run(Params params);
  Result<std::string> bytes_of(const json::Value& document);
  Result<retrieval::Question> common_question(Params params);
  Result<std::optional<std::int64_t>> asof_of(Params params) const;
  Status need_file() const;
  Status settle();

  const std::string path_;
  const std::vector<std::string> folders_;
  std::unique_ptr<Capsule> capsule_;
  Error failed_;                                // without a capsule
  std::optional<SchemaSet> schemas_;            // of the methods, loaded at the first request
  std::string raw_;                             // bytes after the line of the request
  std::map<std::string, std::string> uploads_;  // bytes of files, by the ids that their documents name
};

// Serves requests on a socket until the client closes it, and then indexes what was ingested. Returns an exit status.
int serve(int socket, Server& server);
// Serves MCP, one message a line, until the input ends, with the tools of the methods that a capsule has.
int serve_mcp(int in, int out, Server& server);

}  // namespace muniment::capsule
