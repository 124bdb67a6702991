// Runs one task on untrusted documents in a child process that exits afterwards: reading a PDF or HTML document, or
// training a model. The child receives bytes, opens no files, and has time and memory limits; the parent checks its
// answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/process/spawn.hpp"
#include "base/result.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

struct ToolChildOptions {
  std::vector<std::string> command = {this_program, "--text-child"};
  bool needs_sandbox = false;  // return `unavailable` if Landlock or seccomp is missing
};

// Like read_document, in a child. Additional errors: deadline_exceeded; corrupt if the document crashed the child or
// the answer is invalid (spans outside the text); unavailable if no child can be started.
Result<DocumentText> read_document_apart(std::string_view bytes, std::string_view name, std::string_view mime_type,
                                         Deadline deadline, const ToolChildOptions& options = {});

// Like train_lsa, in a child. Additional errors as above.
Result<LsaModel> train_lsa_apart(const std::vector<std::string>& texts, const LsaOptions& lsa, Deadline deadline,
                                 const ToolChildOptions& options = {});

// Checks that a child's DocumentText is valid for `bytes`. Errors: corrupt, with the fault.
Status check_document(const DocumentText& document, std::string_view bytes);

// The child's own side: serves one task from the socket `channel`. Returns the exit status of the process.
int serve_tool(int channel);

}  // namespace muniment::retrieval
