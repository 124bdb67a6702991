#include "adapters/import/claude_code/claude_code_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "adapters/import/claude_code/claude_code_result.hpp"
#include "adapters/import/claude_code/claude_code_scan.hpp"
#include "adapters/import/claude_code/claude_code_thread.hpp"
#include "adapters/import/readable.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t subagent_key_bytes_max = 40;
// Limit on remembered sidechain lines; a line with an older parent is assigned to the newest subagent.
constexpr std::size_t parents_max = 1 << 20;

// Returns the id of the subagent in the form used within a run id.
std::string subagent_key(std::string_view agent_id) {
  std::string key;
  for (const char c : agent_id.substr(0, subagent_key_bytes_max)) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    key.push_back(allowed ? c : '-');
  }
  return key;
}

}  // namespace

bool is_claude_code_line(const json::Value& record) {
  const std::string type = record["type"].string_or("");
  const bool is_line = (type == "user" || type == "assistant") && record["message"].is(json::Kind::object);
  const bool is_of_session = !type.empty() && record["sessionId"].is(json::Kind::string);
  const bool is_history = type == "file-history-snapshot" && record["snapshot"].is(json::Kind::object);
  return is_line || is_of_session || is_history || (type == "summary" && record["leafUuid"]) ||
         (type == "system" && record["subtype"] && record["uuid"]);
}

class ClaudeCodeLines::State {
 public:
  explicit State(const SessionScan* scan) : scan_(scan), session_({}, out_, scan) {}

  void take(std::string_view text, std::uint64_t number, std::vector<RunAction>& out) {
    out_ = &out;
    std::uint64_t piece = 0;
    read_line_records(text, [&](const LineRecord& record) { take_record(record, line_piece_of(number, piece++)); });
  }

  void take_record(const LineRecord& record, std::uint64_t number) {
    if (!record.value.present()) return session_.add_unreadable(number, record.source, record.why);
    SessionLine line{record.value, number};
    const std::string timestamp = line.value["timestamp"].string_or("");
    if (parse_time(timestamp)) line.occurred_at = timestamp;
    learn(line.value);
    ClaudeCodeThread& thread = thread_of(line);
    if (record.replaced > 0) thread.add_repaired(number, record.source, record.replaced);
    if (is_repeated(line, thread)) return;
    const std::string type = line.value["type"].string_or("");
    const bool has_message = line.value["message"].is(json::Kind::object);
    if (type == "user" && has_message)
      thread.add_user(line);
    else if (type == "assistant" && has_message)
      thread.add_answer(line);
    else if (type == "system")
      thread.add_system(line);
    else if (type != "attachment" || !thread.add_queued(line))
      thread.add_raw(line);
    follow(thread);
    if (facts_.goal.empty()) facts_.goal = session_.first_prompt();
    facts_.answered = session_.ended_turn();
  }

  void skip(std::uint64_t number, std::string_view why, std::vector<RunAction>& out) {
    out_ = &out;
    session_.add_unreadable(number, {}, why);
  }

  void settle(std::vector<RunAction>& out) {
    out_ = &out;
    for (Child& child : children_) {
      if (child.open) child.thread->settle();
    }
    session_.settle();
    facts_.answered = session_.ended_turn();
  }

  void finish(std::vector<RunAction>& out) {
    out_ = &out;
    for (Child& child : children_) end_child(child, unknown_end, "the session does not say how it ended");
    session_.end();
    facts_.answered = session_.ended_turn();
  }

  const SessionFacts& facts() const { return facts_; }

 private:
  struct Child {
    std::string key;
    std::string call_id;                       // empty: unknown
    std::unique_ptr<ClaudeCodeThread> thread;  // reset after its end
    bool open = true;
  };

  // A repeated line is recorded as such and not counted again. A line of the model that repeats a message id may still
  // have a new block.
  bool is_repeated(const SessionLine& line, ClaudeCodeThread& thread) {
    if (scan_ != nullptr && scan_->is_elsewhere(line.value)) {
      thread.add_repeated(line, "a line of another file of this import", false);
      return true;
    }
    const std::string uuid = line.value["uuid"].string_or("");
    if (uuid.empty()) return false;
    const json::Value message = line.value["message"];
    const Seen here{line.number,
                    short_hash(std::string(message.source()) + std::string(result_details(line.value).source()))};
    const auto [known, is_new] = seen_.try_emplace(short_hash(uuid), here);
    if (is_new) return false;
    const bool is_equal = known->second.content == here.content;
    if (!is_equal && line.value["type"].string_or("") == "assistant" && message["id"].is(json::Kind::string))
      return false;
    thread.add_repeated(line, "line " + line_text(known->second.number), is_equal);
    return true;
  }

  void learn(const json::Value& line) {
    const std::pair<std::string&, const char*> wanted[] = {{facts_.session_id, "sessionId"},
                                                           {facts_.version, "version"},
                                                           {facts_.cwd, "cwd"},
                                                           {facts_.git_branch, "gitBranch"}};
    for (const auto& [fact, name] : wanted) {
      if (fact.empty()) fact = line[name].string_or("");
    }
    const std::string type = line["type"].string_or("");
    if (is_of_stream(line)) {
      if (facts_.session_id.empty()) facts_.session_id = line["session_id"].string_or("");
      if (facts_.version.empty()) facts_.version = line["claude_code_version"].string_or("");
      if (type == "result") facts_.end = end_of_stream(line);
    }
    if (type == "custom-title") facts_.title = line["customTitle"].string_or("");
    has_own_title_ = has_own_title_ || (type == "custom-title" && !facts_.title.empty());
    if (has_own_title_) return;  // which a person gave it
    if (type == "summary") facts_.title = line["summary"].string_or("");
    if (type == "ai-title") facts_.title = line["aiTitle"].string_or("");
  }

  // A file with only the lines of a subagent is treated as a session.
  ClaudeCodeThread& thread_of(const SessionLine& line) {
    const std::string uuid = line.value["uuid"].string_or("");
    const std::string parent_call = line.value["parent_tool_use_id"].string_or("");
    const std::string agent_id = subagent_key(line.value["agentId"].string_or(parent_call));
    const bool is_side = line.value["isSidechain"].as_bool().value_or(!parent_call.empty());
    if (!first_seen_ && line.value["message"].present()) {
      first_seen_ = true;
      if (is_side) own_agent_ = agent_id.empty() ? "*" : agent_id;
    }
    if (!is_side || own_agent_ == "*" || (!agent_id.empty() && agent_id == own_agent_)) return session_;
    Child& child = child_of(line, agent_id);
    if (agent_id.empty() && !uuid.empty() && parents_.size() < parents_max) parents_.emplace(uuid, child_index(child));
    if (!child.open) return session_;  // lines after the end of a subagent belong to the session
    return *child.thread;
  }

  std::size_t child_index(const Child& child) const { return static_cast<std::size_t>(&child - children_.data()); }

  Child& child_of(const SessionLine& line, const std::string& agent_id) {
    if (!agent_id.empty()) {
      const auto known =
          std::find_if(children_.begin(), children_.end(), [&](const Child& child) { return child.key == agent_id; });
      return known != children_.end() ? *known : start_child(line, agent_id);
    }
    const auto parent = line.value["parentUuid"].as_string();
    if (parent) {
      if (const auto known = parents_.find(*parent); known != parents_.end()) return children_[known->second];
    }
    // The first line of a subagent has no parent, or one outside the sidechains; a known prompt starts a new subagent.
    if (parent && !children_.empty() && children_.back().open && line.value["type"].string_or("") != "user")
      return children_.back();
    return start_child(line, fmt::format("side-{}", children_.size() + 1));
  }

  Child& start_child(const SessionLine& line, std::string key) {
    const std::string prompt = prompt_of(line.value["message"]["content"]);
    const auto parent_call = line.value["parent_tool_use_id"].as_string();
    auto call = std::find_if(calls_.begin(), calls_.end(), [&](const SubagentCall& known) {
      return parent_call ? known.call_id == *parent_call : known.prompt == prompt;
    });
    if (call == calls_.end() && calls_.size() == 1) call = calls_.begin();
    session_.settle();  // the call is recorded before the run it starts
    RunAction action;
    action.kind = RunAction::Kind::start_child;
    action.child = key;
    action.goal = prompt;
    action.agent = "subagent";
    if (call != calls_.end()) {
      action.agent = call->agent;
      action.call_id = call->call_id;
      calls_.erase(call);
    }
    children_.push_back(
        {std::move(key), action.call_id, std::make_unique<ClaudeCodeThread>(action.child, out_, scan_), true});
    out_->push_back(std::move(action));
    return children_.back();
  }

  static std::string prompt_of(const json::Value& content) {
    if (const auto text = content.as_string()) return *text;
    for (const json::Value block : content) {
      if (const auto text = block["text"].as_string()) return *text;
    }
    return {};
  }

  // Handles calls that may start a subagent and results that end one.
  void follow(ClaudeCodeThread& thread) {
    for (SubagentCall& call : thread.take_subagent_calls()) {
      if (&thread == &session_) calls_.push_back(std::move(call));
    }
    for (const ClaudeCodeThread::Returned& returned : thread.take_returned()) {
      if (&thread != &session_) continue;
      std::erase_if(calls_, [&](const SubagentCall& call) { return call.call_id == returned.call_id; });
      for (Child& child : children_) {
        if (!child.call_id.empty() && child.call_id == returned.call_id) {
          end_child(child, returned.failed ? "failure" : unknown_end,
                    returned.failed ? "its call returned an error" : "its call returned");
        }
      }
    }
  }

  // The return of a call shows that its subagent has ended, but not whether it succeeded.
  void end_child(Child& child, std::string_view outcome, std::string_view summary) {
    if (!child.open) return;
    child.thread->end();
    child.open = false;
    child.thread.reset();
    RunAction action;
    action.kind = RunAction::Kind::end_child;
    action.child = child.key;
    action.outcome = outcome;
    action.summary = summary;
    out_->push_back(std::move(action));
  }

  struct Seen {
    std::uint64_t number = 0;
    std::uint64_t content = 0;  // its hash
  };

  const SessionScan* const scan_;
  std::unordered_map<std::uint64_t, Seen> seen_;  // lines, by the hash of their uuid
  std::vector<RunAction>* out_ = nullptr;         // output of the current call
  SessionFacts facts_;
  ClaudeCodeThread session_;
  std::vector<Child> children_;
  std::vector<SubagentCall> calls_;                       // that no subagent was seen of yet
  std::unordered_map<std::string, std::size_t> parents_;  // sidechain lines without an agent's id: whose they are
  bool has_own_title_ = false;
  bool first_seen_ = false;
  std::string own_agent_;  // id of the subagent that the whole file belongs to; "*": it has no id
};

ClaudeCodeLines::ClaudeCodeLines(const SessionScan* scan) : state_(std::make_unique<State>(scan)) {}
ClaudeCodeLines::~ClaudeCodeLines() = default;
ClaudeCodeLines::ClaudeCodeLines(ClaudeCodeLines&&) noexcept = default;
ClaudeCodeLines& ClaudeCodeLines::operator=(ClaudeCodeLines&&) noexcept = default;

void ClaudeCodeLines::take(std::string_view line, std::uint64_t number, std::vector<RunAction>& out) {
  state_->take(line, number, out);
}
void ClaudeCodeLines::skip(std::uint64_t number, std::string_view why, std::vector<RunAction>& out) {
  state_->skip(number, why, out);
}
void ClaudeCodeLines::settle(std::vector<RunAction>& out) { state_->settle(out); }
void ClaudeCodeLines::finish(std::vector<RunAction>& out) { state_->finish(out); }
const SessionFacts& ClaudeCodeLines::facts() const { return state_->facts(); }

}  // namespace muniment::cli
