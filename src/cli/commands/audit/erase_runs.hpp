// Erases runs one by one, for audit redact --subject and for retention. A run under a legal hold stays.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "client/connect/session.hpp"
#include "client/output.hpp"

namespace muniment::cli {

struct Erasure {
  std::string reason;
  std::string legal_basis;
  bool keeps_documents = false;  // a run whose files hold documents of corpora stays
};

class RunEraser {
 public:
  // With `dry_run`, nothing is erased.
  RunEraser(Session& session, bool dry_run);

  // Calls audit.redact for a run and adds a row to the table. A run that was erased before is left out. Errors: all but
  // a conflict, the reason for which a run stays.
  Status erase(const json::Value& run, std::string_view rule, const Erasure& erasure);
  // Prints the rows and the sums. Returns whether any run stays.
  bool finish();

 private:
  Result<Message> redact(const std::string& run_id, const Erasure& erasure, bool dry_run);
  Result<Message> redact_unless_used(const std::string& run_id, const Erasure& erasure);
  Session& session_;
  const bool dry_run_;
  Table table_;
  std::int64_t runs_ = 0, held_ = 0, events_ = 0, files_ = 0, bytes_ = 0;
};

// Returns the time of a run that its retention counts from: the end, for an import the last time of its source.
std::string end_of_run(const json::Value& run);

// Asks on a terminal for confirmation. Errors: invalid_argument unless the answer is yes.
Status confirm_erasure();

}  // namespace muniment::cli
