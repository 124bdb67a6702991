// Work on whole documents that somebody else wrote, in a child that lives for one task: reading a PDF
// or HTML, and training a model. It gets bytes, reads no file, and has a limit of time and of memory; what
// it answers is checked before it is believed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "retrieval/child/spawn.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

struct ToolChildOptions {
  std::vector<std::string> command = {this_program, "--text-child"};
  bool needs_sandbox = false;  // rather unavailable than without Landlock and seccomp
};

// As read_document, in a child. Errors also: deadline_exceeded; corrupt, when the document brought the child down, or
// what it answers cannot be (spans outside the text); unavailable, when there is no child to be had.
Result<DocumentText> read_document_apart(std::string_view bytes, std::string_view name, std::string_view mime_type,
                                         Deadline deadline, const ToolChildOptions& options = {});

// As train_lsa, in a child. Errors likewise.
Result<LsaModel> train_lsa_apart(const std::vector<std::string>& texts, const LsaOptions& lsa, Deadline deadline,
                                 const ToolChildOptions& options = {});

// Whether a DocumentText that a child answers for `bytes` can be one: corrupt says what is wrong.
Status check_document(const DocumentText& document, std::string_view bytes);

// The child's own side: one task from the socket `channel`, one answer. The exit status of the process.
int serve_tool(int channel);

}  // namespace muniment::retrieval
