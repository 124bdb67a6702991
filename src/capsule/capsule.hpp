// A capsule: one file that holds documents with all revisions, their indexes, feedback and turns of a conversation, and
// answers queries by the daemon's pipeline (retrieval/query/), without a daemon. Its frames take the place of the log:
// a `seq` is a frame's number. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "capsule/config.hpp"
#include "capsule/file.hpp"
#include "capsule/index.hpp"
#include "retrieval/corpus/ingest.hpp"
#include "retrieval/query/answer.hpp"

namespace muniment::capsule {

// Checks a document's id as a relative path: no empty part, no "." and "..", no leading "/". Errors: invalid_argument.
Status check_relative(std::string_view document);

// The outcome of ingesting one document.
struct Ingested {
  std::string id;
  std::string revision;
  std::string replaced;  // revision that it replaces; empty: none
  std::string trust;
  std::int64_t chunks = 0;
  std::int64_t seq = -1;
  bool unchanged = false;
  std::vector<std::string> known;  // pointers of other documents that state the same
  std::optional<Error> error;
};

class Capsule {
 public:
  // Opens a capsule for reading; a writing call takes the lock. Errors: not_found, invalid_argument, corrupt.
  static Result<std::unique_ptr<Capsule>> open(const std::string& path);
  // The same, but a missing file is created by the first writing call.
  static Result<std::unique_ptr<Capsule>> open_or_create(const std::string& path);

  CapsuleFile& file() { return *file_; }
  const Index& index() const { return *index_; }
  bool is_new() const { return file_ == nullptr; }

  // Adds documents; they take effect together. They are searchable after `settle`. `known`: also finds the documents
  // that state the same as the only one. Errors: conflict if another process writes; those of writing.
  Result<std::vector<Ingested>> ingest(std::vector<retrieval::DocumentToIngest> documents,
                                       const std::vector<std::string>& bytes, bool known = false);
  // Ends a document. Errors: not_found; conflict if `base` is given and is not its current revision.
  Result<store::DocumentRow> retract(const std::string& corpus, const std::string& document, const std::string& base,
                                     const std::string& reason);
  // Indexes what was ingested. Does nothing if all is.
  Status settle();

  // Answers a question as the daemon does. `as_of` is a frame's number. Errors: invalid_argument, corrupt.
  Result<retrieval::Answer> answer(const retrieval::Question& question);
  // Records a query that was answered, if no other process writes; it may be lost by a power cut. `drafted`: members
  // about an answer that was drafted from it, whose record is `body` and is durable. Returns the frame's number.
  std::optional<std::int64_t> record_query(const retrieval::Question& question, const retrieval::Answer& answer,
                                           const std::function<void(json::Writer&)>& drafted = {},
                                           std::string_view body = {});
  Result<std::int64_t> give_feedback(std::string_view pointer, double value, std::string_view about);
  Result<std::int64_t> add_frame(FrameType type, std::string_view about, std::string_view body);

  // Returns the frame's number as of a time. Errors: invalid_argument for the future.
  Result<std::int64_t> seq_as_of(Time time) const;
  // Returns the revisions of a document, oldest first, also those that are not indexed yet.
  Result<std::vector<Revision>> history(const std::string& corpus, const std::string& document);
  // Visits the current revisions from a frame on, in the order of the frames, until it returns false.
  Status each_current(std::int64_t from, const std::function<Result<bool>(const Revision&)>& visit);
  // Returns the newest config; nullopt: there is none.
  Result<std::optional<StoredConfig>> config();
  // Replaces the config, which this user then trusts. Errors: those of parse_config and of writing.
  Result<StoredConfig> set_config(std::string_view body);

  Status compact(Anew anew);

  const std::string& path() const { return path_; }
  // True if this process has the lock of writing, or the file differs from the one that was opened: a long session
  // opens it again before the next request.
  bool is_stale() const;

 private:
  explicit Capsule(std::string path) : path_(std::move(path)) {}
  class Source;
  Status reopen(Access access);
  Status want_writer();
  Result<Ingested> ingest_one(retrieval::DocumentToIngest about, std::string_view bytes, bool known);
  Result<Frame> append(FrameType type, std::string_view about, std::string_view body);
  Status commit();
  Status read_pending();
  Status note_change(const Frame& frame);
  Result<std::optional<store::DocumentRow>> current(const std::string& corpus, const std::string& document);
  Status settle_plan(retrieval::QueryPlan& plan) const;
  Result<retrieval::HookOptions> hook_options(std::vector<std::string>& degraded);

  const std::string path_;
  std::unique_ptr<CapsuleFile> file_;
  std::unique_ptr<Index> index_;
  bool writes_ = false;
  std::map<std::string, std::optional<store::DocumentRow>> pending_;  // by URI: what later frames made current
  bool pending_known_ = false;
};

}  // namespace muniment::capsule
