// Collects scalars of JSON results and judges their statuses.
#include "evidence/run_judge/actions/receipt.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text.hpp"
#include "evidence/run_judge/actions/values.hpp"
#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

constexpr int depth_max = 12;
constexpr std::size_t nested_texts_max = 3;  // a text that is JSON again

void collect(std::vector<Scalar>& scalars, Records& records, const json::Value& value, std::string_view key, int record,
             int depth) {
  if (scalars.size() >= scalars_max || depth > depth_max) return;
  switch (value.kind()) {
    case json::Kind::object: {
      const int own = static_cast<int>(records.parents.size());
      records.parents.push_back(record);
      for (const json::Value member : value) collect(scalars, records, member, lowered(member.key()), own, depth + 1);
      return;
    }
    case json::Kind::array:
      for (const json::Value item : value) collect(scalars, records, item, key, record, depth + 1);
      return;
    case json::Kind::string: {
      std::string text = value.string_or("");
      if (text.size() > scalar_bytes_max) text.resize(scalar_bytes_max);
      scalars.push_back({.key = std::string(key),
                         .text = text,
                         .plain = plain(text),
                         .record = record,
                         .depth = depth,
                         .number = false});
      return;
    }
    case json::Kind::number:
    case json::Kind::boolean:
      scalars.push_back({.key = std::string(key),
                         .text = std::string(value.source()),
                         .plain = plain(value.source()),
                         .record = record,
                         .depth = depth,
                         .number = value.kind() == json::Kind::number});
      return;
    case json::Kind::null: return;
  }
}

constexpr std::string_view good_flags[] = {"changed",    "modified", "success",   "ok",       "succeeded",
                                           "successful", "sent",     "delivered", "applied",  "committed",
                                           "confirmed",  "booked",   "created",   "updated",  "deleted",
                                           "cancelled",  "merged",   "pushed",    "deployed", "saved",
                                           "persisted",  "refunded", "charged",   "paid",     "accepted_by_provider",
                                           "completed",  "scheduled"};
constexpr std::string_view bad_flags[] = {"iserror",  "is_error",  "failed",  "rejected",
                                          "declined", "timed_out", "aborted", "rolled_back"};
constexpr std::string_view open_flags[] = {"dry_run",
                                           "dryrun",
                                           "simulated",
                                           "simulation",
                                           "pending",
                                           "queued",
                                           "draft",
                                           "requires_approval",
                                           "requires_confirmation",
                                           "preview",
                                           "needs_approval",
                                           "approval_required",
                                           "confirmation_required",
                                           "sandbox",
                                           "test_mode",
                                           "validate_only"};
constexpr std::string_view statuses[] = {
    "status",         "state",          "result",        "outcome",      "delivery_status",
    "booking_status", "payment_status", "refund_status", "order_status", "reservation_status",
    "conclusion",     "sync_status",    "phase",         "health",       "deployment_status",
    "stage_status",   "job_status"};
constexpr std::string_view codes[] = {"exit_code", "exitcode", "returncode", "return_code", "exit_status", "exit"};
constexpr std::string_view http_codes[] = {"status", "status_code", "statuscode", "http_status", "code", "http_code"};
constexpr std::string_view good_words[] = {
    "ok",        "success",   "successful", "succeeded", "done",     "completed", "complete", "confirmed",
    "sent",      "delivered", "booked",     "created",   "updated",  "cancelled", "canceled", "deleted",
    "refunded",  "paid",      "merged",     "deployed",  "live",     "active",    "closed",   "resolved",
    "applied",   "ticketed",  "captured",   "settled",   "pushed",   "passed",    "healthy",  "published",
    "scheduled", "saved",     "removed",    "archived",  "reserved", "open",      "opened"};

struct Failures {
  // The beginning of a plain answer that refuses.
  Pattern failed{
      R"((?im)^\W{0,3}(?:error|err|no change|failed|failure|exception|fatal|traceback|invalid|denied|forbidden|unauthorized|not found|insufficient|not enough|sold out|unavailable|exceeded|no availability|bad request|conflict|timeout|rejected|declined|unable to|could not|cannot|can't|http/?[\d.]*\s*[45]\d\d|[45]\d\d\s+[a-z]|\[error\])|\b(?:error|exception):|\b(?:was|were|is|has been|not|been)\s+(?:rejected|declined|denied|refused|not (?:allowed|permitted|possible|eligible|found|sent|booked|updated|created|available))\b|\b(?:failed|unable) to\b|\b(?:could|did) not\b|\bfailed\b[^\n]{0,60}$|\bpermission denied\b|\bno longer available\b|\bnot (?:allowed|permitted|authorized)\b|! \[rejected\]|\b(?:no (?:such|matching)|nothing was|no changes were)\b)"};
  Pattern pending{
      R"(\b(?:queued|pending|awaiting|in progress|being processed|will be processed|dry[- ]run|simulated|request(?:ed)? (?:received|submitted)|accepted for|waitlist(?:ed)?|needs? approval|requires? (?:approval|confirmation)|not yet|draft (?:saved|created)|saved as (?:a )?draft|on hold|held for|no changes (?:were )?made)\b)"};
};

const Failures& failures() {
  static const Failures patterns;
  return patterns;
}

std::optional<double> numeric(const Scalar& scalar) {
  double number = 0;
  const auto [end, error] = std::from_chars(scalar.text.data(), scalar.text.data() + scalar.text.size(), number);
  if (error != std::errc() || end != scalar.text.data() + scalar.text.size()) return std::nullopt;
  return number;
}

struct Found {
  std::string failed, pending, partly, done;
};

void note(std::string& slot, const Scalar& scalar) {
  if (slot.empty()) slot = preview(scalar.key + " " + scalar.text, 80);
}

// A status deep in a document describes a part of it, so that only failures and pending states near the root count.
void judge_scalar(Found& found, const Scalar& scalar, int top) {
  const std::string text = lowered(scalar.text);
  const bool near = scalar.depth <= top + 2;
  const std::optional<double> number = numeric(scalar);
  const bool flag = text == "true" || text == "false";
  if (flag && is_word_of(scalar.key, good_flags)) return note(text == "true" ? found.done : found.failed, scalar);
  if (flag && text == "true" && is_word_of(scalar.key, bad_flags)) return note(found.failed, scalar);
  if (flag && text == "true" && is_word_of(scalar.key, open_flags)) return note(found.pending, scalar);
  if (number && is_word_of(scalar.key, codes)) return note(*number == 0 ? found.done : found.failed, scalar);
  if (number && is_word_of(scalar.key, http_codes) && *number >= 100 && *number < 600)
    return note(*number >= 400 ? found.failed : *number == 202 ? found.pending : found.done, scalar);
  const bool status = is_word_of(scalar.key, statuses) || scalar.key.ends_with("status");
  if (status && near && !flag && !number) {
    if (is_failed_word(text)) return note(found.failed, scalar);
    if (is_pending_word(text)) return note(found.pending, scalar);
    if (is_word_of(text, good_words)) return note(found.done, scalar);
    if (text.starts_with("partial")) return note(found.partly, scalar);
  }
  const bool error = scalar.key == "error" || scalar.key == "errors" || scalar.key == "error_message" ||
                     scalar.key == "error_code" || scalar.key == "errormessage" || scalar.key == "exception";
  if (error && near && !text.empty() && text != "false" && text != "none" && text != "null" && text != "0")
    note(found.failed, scalar);
}

bool is_count_of_failures(std::string_view key) {
  return key == "failed" || key == "failures" || key == "failed_count" || key == "errors_count" ||
         key == "error_count" || key == "skipped" || key == "num_failed" || key == "fail_count" || key == "rejected" ||
         key == "not_updated" || key == "bounced";
}

bool is_count_of_success(std::string_view key) {
  static const Pattern counts(
      R"(^(?:(?:num_|total_)?(?:updated|created|sent|deleted|succeeded|processed|merged|imported|modified|delivered|inserted|archived|cancelled|closed|affected|matched)(?:_?count|_rows|_records)?|success_count|rows_affected|rowcount|row_count|affected_?rows)$)");
  return counts.in(key);
}

// Returns the verdict of the members. A batch of which some items failed is done in part.
void judge_scalars(ToolResult& result) {
  Found found;
  std::string nothing;  // a count of 0
  std::size_t good_items = 0, bad_items = 0;
  int top = 1'000;
  for (const Scalar& scalar : result.scalars) top = std::min(top, scalar.depth);
  for (const Scalar& scalar : result.scalars) {
    if (scalar.number && is_count_of_failures(scalar.key)) {
      if (numeric(scalar).value_or(0) > 0) note(found.partly, scalar);
      continue;
    }
    static const Pattern left_out(R"(^(?:failed|rejected|skipped|failures|unprocessed|not_found|bounced)$)");
    if (!scalar.number && left_out.in(scalar.key) && scalar.text != "true" && scalar.text != "false" &&
        !scalar.text.empty()) {
      note(found.partly, scalar);
      continue;
    }
    if (scalar.number && is_count_of_success(scalar.key)) {
      note(numeric(scalar).value_or(0) > 0 ? found.done : nothing, scalar);
      continue;
    }
    Found one;
    judge_scalar(one, scalar, top);
    const bool item = scalar.depth > top + 1;
    bad_items += item && !one.failed.empty() ? 1U : 0U;
    good_items += item && !one.done.empty() ? 1U : 0U;
    if (found.failed.empty()) found.failed = one.failed;
    if (found.pending.empty()) found.pending = one.pending;
    if (found.partly.empty()) found.partly = one.partly;
    if (found.done.empty()) found.done = one.done;
  }
  if (found.failed.empty() && found.done.empty() && found.pending.empty()) found.failed = nothing;
  const auto set = [&](Receipt receipt, const std::string& status) {
    result.receipt = receipt;
    result.status = status;
  };
  if (!found.failed.empty() && bad_items > 0 && good_items > 0) return set(Receipt::partly, found.failed);
  if (!found.failed.empty() && !(found.partly.empty() || found.done.empty())) return set(Receipt::partly, found.partly);
  if (!found.failed.empty()) return set(Receipt::failed, found.failed);
  if (!found.partly.empty()) return set(Receipt::partly, found.partly);
  if (!found.pending.empty()) return set(Receipt::pending, found.pending);
  set(Receipt::done, found.done);
}

void read_counts(ToolResult& result) {
  reports::Counts counts;
  bool named = false;
  for (const Scalar& scalar : result.scalars) {
    const auto number = static_cast<std::int64_t>(std::clamp(numeric(scalar).value_or(0), 0.0, 1e9));
    if (!scalar.number) continue;
    if (scalar.key == "passed" || scalar.key == "tests_passed" || scalar.key == "num_passed" ||
        scalar.key == "passes") {
      counts.passed = number;
      named = true;
    } else if (scalar.key == "failed" || scalar.key == "tests_failed" || scalar.key == "failures" ||
               scalar.key == "num_failed") {
      counts.failed = std::max(counts.failed, number);
      named = true;
    } else if (scalar.key == "errors") {
      counts.failed += number;
    } else if (scalar.key == "skipped") {
      counts.skipped = number;
    }
  }
  counts.total = counts.passed + counts.failed + counts.skipped;
  if (named) result.counts = counts;
}

void read_output(ToolResult& result) {
  static constexpr std::string_view outputs[] = {"stdout",  "stderr",  "output", "text", "result",
                                                 "content", "message", "log",    "logs"};
  for (const std::string_view key : outputs) {
    for (const Scalar& scalar : result.scalars) {
      if (scalar.key != key || scalar.text.empty()) continue;
      if (!result.output.empty()) result.output += '\n';
      result.output += scalar.text;
    }
  }
  for (const Scalar& scalar : result.scalars) {
    const std::optional<double> number = numeric(scalar);
    if (number && is_word_of(scalar.key, codes)) result.exit_code = static_cast<std::int64_t>(*number);
  }
}

void judge_text(ToolResult& result, std::string_view text) {
  constexpr std::size_t answer_bytes = 400;
  const std::string_view head = text.substr(0, answer_bytes);
  result.receipt = Receipt::done;
  if (failures().failed.in(head)) {
    result.receipt = Receipt::failed;
  } else if (failures().pending.in(head)) {
    result.receipt = Receipt::pending;
  }
  if (result.receipt != Receipt::done) result.status = preview(head, 80);
}

// Returns the texts of [{"type": "text", "text": …}], the content of a result of MCP.
std::optional<std::string> content_of(const json::Value& root) {
  const json::Value parts = root.is(json::Kind::object) ? root["content"] : root;
  if (!parts.is(json::Kind::array) || parts.size() == 0) return std::nullopt;
  std::string text;
  for (const json::Value part : parts) {
    const auto one = part["text"].as_string();
    if (!one) return std::nullopt;
    text += *one;
  }
  return text;
}

ToolResult read(std::string_view text, std::size_t nested) {
  ToolResult result;
  result.output = std::string(text);
  std::string_view trimmed = text;
  while (!trimmed.empty() && std::isspace(static_cast<unsigned char>(trimmed.front())) != 0) trimmed.remove_prefix(1);
  if (trimmed.size() <= receipt_bytes_max && (trimmed.starts_with("{") || trimmed.starts_with("["))) {
    auto document = json::parse(trimmed);
    if (!document) {
      // A note after the document is data.
      const std::size_t line = trimmed.rfind("}\n");
      if (line != std::string_view::npos) document = json::parse(trimmed = trimmed.substr(0, line + 1));
    }
    if (document) {
      const json::Value root = document->root();
      if (const auto inner = content_of(root); inner && nested < nested_texts_max) {
        result = read(*inner, nested + 1);
        if (root["isError"].as_bool().value_or(false)) {
          result.receipt = Receipt::failed;
          result.status = "isError true";
        }
        return result;
      }
      result.json = true;
      collect(result.scalars, result.records, root, "", -1, 0);
      result.output.clear();
      read_output(result);
      if (result.output.empty()) result.output = std::string(text);
      judge_scalars(result);
      read_counts(result);
      // Without a status, the message is the answer.
      if (result.receipt == Receipt::done && result.status.empty()) {
        for (const Scalar& scalar : result.scalars) {
          if (scalar.key == "message" || scalar.key == "detail" || scalar.key == "result" || scalar.key == "msg" ||
              (scalar.key.empty() && scalar.depth == 0))
            judge_text(result, scalar.text);
        }
      }
      return result;
    }
  }
  judge_text(result, text);
  return result;
}

}  // namespace

void add_scalars(std::vector<Scalar>& scalars, Records& records, const json::Value& value) {
  collect(scalars, records, value, "", -1, 0);
}

ToolResult result_of(std::string_view text) { return read(text, 0); }

bool is_pending_word(std::string_view status) {
  static const Pattern pending(
      R"(^(?:pending|queued|accepted|draft|processing|in[ _-]?progress|running|submitted|initiated|received|awaiting\b.*|awaiting_.*|requires_.*|needs_.*|pending_.*|held|hold|on[ _-]?hold|wait(?:ing)?[ _-]?list(?:ed)?|tentative|unconfirmed|dry[ _-]?run|simulated|scheduled_for_.*|in[ _-]?review|under[ _-]?review|deferred|enqueued|started|created_unconfirmed|requested|planned|staged|preview|proposed|option)$)");
  return pending.in(status);
}

bool is_failed_word(std::string_view status) {
  static const Pattern failed(
      R"(^(?:error|errored|fail|failed|failure|failing|rejected|declined|denied|invalid|not[ _-]?found|conflict|forbidden|unauthorized|timeout|timed[ _-]?out|bounced|undeliverable|aborted|blocked|unavailable|sold[ _-]?out|rolled[ _-]?back|expired|crashed|unhealthy|no[ _-]?(?:op|change|changes)|not[ _-]?(?:applied|sent|modified|changed|updated|created|booked)|skipped|unchanged|.*[_ ]failed|.*[_ ]error|.*[_ ]rejected)$)");
  return failed.in(status);
}

}  // namespace muniment::evidence::run_judge
