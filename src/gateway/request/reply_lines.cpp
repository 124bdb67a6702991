// Writes JSON-RPC 2.0 replies, one line each (docs/protocol.md).

#include "gateway/request/dispatcher.hpp"

namespace muniment::gateway {
namespace {

// Returns the anchor of the runbook or the protocol that explains a code.
std::string doc_of(Errc code) {
  const bool halting = is_halting(code) || code == Errc::run_halted;
  return std::string(halting ? "docs/runbook.md#" : "docs/protocol.md#") + std::string(name_of(code));
}

}  // namespace

void say_log(Answer& answer, std::int16_t log_no) {
  if (log_no == 0) return;
  const auto with_log = [log_no](Reply reply) {
    reply.result.pop_back();  // removes the closing brace
    reply.result.append(reply.result.size() > 1 ? ",\"log_no\":" : "\"log_no\":")
        .append(std::to_string(log_no))
        .push_back('}');
    return reply;
  };
  if (auto* reply = std::get_if<Reply>(&answer)) *reply = with_log(std::move(*reply));
  auto* append = std::get_if<PendingAppend>(&answer);
  if (append == nullptr) return;
  const auto then = [with_log](Result<Reply> reply) {
    return reply ? Result<Reply>(with_log(*std::move(reply))) : reply;
  };
  append->finish = [finish = append->finish, then](Services& services, const std::vector<events::Receipt>& receipts) {
    return then(finish(services, receipts));
  };
  if (append->refused)
    append->refused = [refused = append->refused, then](Services& services, Error error) {
      return then(refused(services, std::move(error)));
    };
}

std::string result_line(std::string_view id, std::string_view result) {
  std::string line;
  line.reserve(id.size() + result.size() + 40);
  line.append(R"({"jsonrpc":"2.0","id":)").append(id).append(R"(,"result":)").append(result).append("}\n");
  return line;
}

std::string error_line(std::string_view id, const Error& error) {
  json::Writer out;
  out.begin_object().member("jsonrpc", "2.0").raw_member("id", id).key("error").begin_object();
  out.member("code", rpc_code_of(error.code));
  out.member("message", std::string(name_of(error.code)) + ": " + error.message);
  out.key("data")
      .begin_object()
      .member("code", name_of(error.code))
      .member("retryable", is_transient(error.code) || error.retry_after_ms.has_value());
  if (error.limit) out.member("limit", *error.limit);
  if (!error.run_id.empty()) out.member("run_id", error.run_id);
  if (!error.pointer.empty()) out.member("pointer", error.pointer);
  if (error.retry_after_ms) out.member("retry_after_ms", *error.retry_after_ms);
  if (!error.outcome.empty()) out.member("outcome", error.outcome);
  if (!error.event_ids.empty()) {
    out.key("event_ids").begin_array();
    for (const std::string& event_id : error.event_ids) out.string(event_id);
    out.end_array();
  }
  out.member("doc", doc_of(error.code)).end_object().end_object().end_object();
  return std::move(out).text() + "\n";
}

}  // namespace muniment::gateway
