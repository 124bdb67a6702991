// Runs one task on an untrusted document in a sandboxed child.
#include "retrieval/child/tool_child.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/limits.hpp"
#include "base/process/sandbox.hpp"
#include "base/utf8.hpp"
#include "retrieval/child/frame.hpp"
#include "retrieval/child/messages.hpp"

namespace muniment::retrieval {

namespace {

// A task and its limits, which the daemon sets.
struct Task {
  bool needs_sandbox = false;
  std::int64_t cpu_seconds_max = 0;
  std::int64_t address_space_bytes_max = 0;
  std::string payload;
};

template <typename Archive, Of<Task> T>
void members(Archive& archive, T& it) {
  archive(it.needs_sandbox, it.cpu_seconds_max, it.address_space_bytes_max, it.payload);
}

constexpr std::int64_t reading_memory_max = std::int64_t{4} << 30;
constexpr std::int64_t training_memory_max = std::int64_t{16} << 30;
constexpr int training_priority = 10;  // niceness

Error unreadable(const std::string& what) {
  return Error(Errc::corrupt, "cannot read the document in a child: " + what);
}

Result<std::string> run_apart(MessageKind kind, Task task, Deadline deadline, const ToolChildOptions& options) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(deadline - steady_now()).count();
  task.needs_sandbox = options.needs_sandbox;
  task.cpu_seconds_max = std::clamp<std::int64_t>(left, 1, 86'400) + 1;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(Errc::unavailable, "socketpair: " + std::generic_category().message(errno));
  }
  const Fd own(ends[0]);
  Fd childs(ends[1]);
  ASSIGN_OR_RETURN(Child child, spawn({options.command, {childs.get()}, false}));
  childs.reset();
  const auto sent = send_frame(own.get(), kind, 1, to_wire(task), limits::child_task_bytes_max, deadline);
  if (!sent && sent.error().code != Errc::unavailable) return sent.error();
  auto frame = receive_frame(own.get(), limits::child_result_bytes_max, deadline);
  if (!frame && frame.error().code == Errc::deadline_exceeded) return std::move(frame).error();
  if (!frame && child.wait_until(std::min(deadline, steady_now() + std::chrono::seconds(1)))) {
    return Error(Errc::corrupt, "its child ended without an answer: " + child.wait().text);
  }
  if (!frame) return Error(Errc::corrupt, frame.error().message);
  if (frame->kind == MessageKind::answer) return std::move(frame->payload);
  auto error = error_from_wire(frame->payload);
  return error ? *std::move(error) : Error(Errc::corrupt, "its child sent an invalid answer");
}

Result<std::string> perform(MessageKind kind, const std::string& payload) {
  if (kind == MessageKind::document) {
    ASSIGN_OR_RETURN(const auto task, from_wire<DocumentTask>(payload));
    ASSIGN_OR_RETURN(const auto document, read_document(task.bytes, task.name, task.mime_type));
    return to_wire(document);
  }
  if (kind != MessageKind::train) return Error(Errc::corrupt, "no task");
  ::setpriority(PRIO_PROCESS, 0, training_priority);  // searches and indexing have priority
  ASSIGN_OR_RETURN(const auto task, from_wire<TrainTask>(payload));
  const std::vector<std::string_view> texts(task.texts.begin(), task.texts.end());
  ASSIGN_OR_RETURN(const auto model, train_lsa(texts, task.options));
  return to_wire(model);
}

Result<std::string> perform_in_sandbox(const Frame& frame) {
  ASSIGN_OR_RETURN(const auto task, from_wire<Task>(frame.payload));
  if (frame.kind == MessageKind::document) load_readers();
  SandboxPolicy policy;
  policy.files.read_only = {
      "/usr/share/poppler"};  // tables of character names, for PDFs in Chinese, Japanese and Korean
  policy.address_space_bytes_max = task.address_space_bytes_max;
  policy.cpu_seconds_max = task.cpu_seconds_max;
  policy.open_files_max = 64;
  policy.needs_file_rules = policy.needs_call_filter = task.needs_sandbox;
  RETURN_IF_ERROR(enter_sandbox(policy));
  return perform(frame.kind, task.payload);
}

}  // namespace

Status check_document(const DocumentText& document, std::string_view bytes) {
  if (document.as_is && document.text != bytes) return unreadable("it is marked as unchanged, but the text differs");
  if (first_invalid_utf8(document.text) != std::string::npos ||
      first_invalid_utf8(document.title) != std::string::npos) {
    return unreadable("its text is not UTF-8");
  }
  const auto end = static_cast<std::int64_t>(document.text.size());
  std::int64_t from = 0;
  for (const Chunk& chunk : document.chunks) {
    if (chunk.start < from || chunk.end <= chunk.start || chunk.end > end)
      return unreadable("a chunk is outside its text");
    if (first_invalid_utf8(chunk.heading) != std::string::npos) return unreadable("a heading is not UTF-8");
    const std::string_view span =
        std::string_view(document.text)
            .substr(static_cast<std::size_t>(chunk.start), static_cast<std::size_t>(chunk.end - chunk.start));
    if (first_invalid_utf8(span) != std::string::npos) return unreadable("a chunk splits a character");
    from = chunk.end;
  }
  return success();
}

Result<DocumentText> read_document_apart(std::string_view bytes, std::string_view name, std::string_view mime_type,
                                         Deadline deadline, const ToolChildOptions& options) {
  Task task;
  task.address_space_bytes_max = reading_memory_max;
  task.payload = to_wire(DocumentTask{std::string(bytes), std::string(name), std::string(mime_type)});
  ASSIGN_OR_RETURN(const std::string answer, run_apart(MessageKind::document, std::move(task), deadline, options));
  ASSIGN_OR_RETURN(auto document, from_wire<DocumentText>(answer));
  RETURN_IF_ERROR(check_document(document, bytes));
  return document;
}

Result<LsaModel> train_lsa_apart(const std::vector<std::string>& texts, const LsaOptions& lsa, Deadline deadline,
                                 const ToolChildOptions& options) {
  Task task;
  task.address_space_bytes_max = training_memory_max;
  task.payload = to_wire(TrainTask{texts, lsa});
  ASSIGN_OR_RETURN(const std::string answer, run_apart(MessageKind::train, std::move(task), deadline, options));
  return from_wire<LsaModel>(answer);
}

int serve_tool(int channel) {
  close_descriptors_from(channel + 1);
  const auto frame = receive_frame(channel, limits::child_task_bytes_max, no_deadline);
  if (!frame) return 2;
  Result<std::string> result = Error(Errc::too_large, "it needs more memory than its limit");
  try {
    result = perform_in_sandbox(*frame);
  } catch (const std::bad_alloc&) {
    // The answer for this case was allocated in advance.
  }
  const MessageKind kind = result ? MessageKind::answer : MessageKind::failure;
  const std::string answer = result ? *std::move(result) : to_wire(result.error());
  return send_frame(channel, kind, 1, answer, limits::child_result_bytes_max, no_deadline) ? 0 : 1;
}

}  // namespace muniment::retrieval
