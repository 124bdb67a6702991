// External helpers of a query: the expansion hook, the rerank hook, and a reranking server. Each may be missing, slow
// or faulty; then the call returns an error and the query continues without it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"
#include "retrieval/embed/http_reranker.hpp"
#include "retrieval/hooks/hook_messages.hpp"
#include "retrieval/hooks/hook_process.hpp"

namespace muniment::retrieval {

struct HookOptions {
  std::vector<std::string> expansion;                        // command of the hook; empty: none
  std::vector<std::string> rerank;                           // command of the hook; empty: none
  std::int64_t hook_ms = 0;                                  // time limit of each run
  std::size_t expansions_max = limits::hook_expansions_max;  // of each kind
  std::string rerank_url;                                    // URL of a server with TEI's /rerank; empty: none
  std::string rerank_key_file;
  std::int64_t rerank_ms = 0;  // time limit of a request to it
};

class Hooks {
 public:
  explicit Hooks(const HookOptions& options);

  bool can_expand() const { return !expansion_.argv.empty(); }
  bool can_rerank() const { return !rerank_.argv.empty(); }
  std::size_t expansions_max() const { return expansions_max_; }
  bool has_server() const { return !server_url_.empty(); }
  // Returns the parts of an answer's key that identify the helpers: the commands, the server.
  std::string expansion_identity() const;
  std::string rerank_identity() const;
  const std::string& server_identity() const { return server_url_; }

  // Expands a query. Errors: unavailable, prefixed by the name: "expansion hook: no answer within 2000 ms".
  Result<ExpansionAnswer> expand(const ExpansionRequest& request, Deadline deadline) const;
  Result<RerankAnswer> rerank(std::string_view query, std::span<const RerankCandidate> candidates,
                              Deadline deadline) const;
  Result<RerankAnswer> ask_server(std::string_view query, std::span<const RerankCandidate> candidates) const;

 private:
  class Slot;  // one of limits::hooks_at_once_max
  Result<std::string> run(const HookCommand& command, std::string_view input, Deadline deadline) const;

  const HookCommand expansion_, rerank_;
  const std::size_t expansions_max_;
  const std::string server_url_;
  std::unique_ptr<HttpReranker> server_;  // null: none, or server_problem_ has the reason
  std::string server_problem_;
  mutable std::atomic<int> busy_ = 0;
};

}  // namespace muniment::retrieval
