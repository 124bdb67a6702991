#include "adapters/import/claude_code/claude_code_session.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "adapters/import/guess.hpp"
#include "adapters/import/readable.hpp"
#include "adapters/import/records.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view subagents_folder = "subagents";
constexpr std::string_view subagent_prefix = "agent-";
constexpr std::size_t agent_about_bytes_max = 64 * 1024;

// Calls `take` with the text and the number of each line, or with the error of a line that is too long.
Status each_line(
    const std::string& path,
    const std::function<Status(const Result<std::optional<TraceRecord>>&, std::uint64_t, RecordReader&)>& take) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open_lines(path));
  for (std::uint64_t last = 0;;) {
    const auto record = reader.next();
    if (!record && record.error().code != Errc::too_large) return record.error();
    if (record && !*record) return success();
    last = record ? (*record)->line : last + 1;
    RETURN_IF_ERROR(take(record, last, reader));
  }
}

// Returns the session's file for a subagent's file; empty if `path` is not a subagent's or the session is missing.
std::string session_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  if (folder.filename() != subagents_folder || !path.filename().string().starts_with(subagent_prefix)) return {};
  std::string session = folder.parent_path().string() + ".jsonl";
  std::error_code unknown;
  return fs::is_regular_file(session, unknown) ? session : std::string();
}

std::vector<std::string> jsonl_files(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->is_regular_file(error) && at->path().extension() == ".jsonl") found.push_back(at->path().string());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

Result<std::vector<std::string>> session_files(const std::vector<std::string>& paths, const TraceWalk& walk) {
  std::vector<std::string> files;
  std::set<std::string> there;
  std::set<std::string> found;  // which were not named themselves
  const auto add = [&](const std::string& path, bool is_found) {
    const std::string session = session_of(path);
    const std::string& wanted = session.empty() ? path : session;
    is_found = is_found || !session.empty();
    const bool is_there = !there.insert(wanted).second;
    if (is_there && (is_found || found.contains(wanted))) return;
    if (is_found) found.insert(wanted);
    files.push_back(wanted);
  };
  for (const std::string& path : paths) {
    std::error_code unknown;
    std::vector<std::string> inside;
    const bool is_folder = fs::is_directory(path, unknown);
    if (is_folder) RETURN_IF_ERROR(find_traces(path, walk, inside));
    if (inside.empty() && !(is_folder && walk.entered)) add(path, false);
    for (const std::string& file : inside) add(file, true);
  }
  return files;
}

Result<ClaudeCodeSession> ClaudeCodeSession::open(const std::string& path, LineIdentities* identities) {
  ClaudeCodeSession session;
  // Unknown lines of a session are kept, so a file of another format is rejected here.
  RETURN_IF_ERROR(refuse_other_format(path, claude_code_format));
  session.own_.path = path;
  RETURN_IF_ERROR(session.scan_file(session.own_, identities));
  RETURN_IF_ERROR(session.find_subagents(identities));
  session.head_.goal = session.own_.goal;
  return session;
}

Status ClaudeCodeSession::scan_file(File& file, LineIdentities* identities) {
  ASSIGN_OR_RETURN(file.sha256, sha256_of_file(file.path));
  file.scan = std::make_shared<SessionScan>(identities);
  ClaudeCodeLines lines;
  std::vector<RunAction> ignored;
  RETURN_IF_ERROR(each_line(file.path, [&](const auto& record, std::uint64_t number, RecordReader&) -> Status {
    if (!record) return success();
    const std::string_view text = (*record)->text;
    if (lines.facts().goal.empty()) lines.take(text, number, ignored);
    ignored.clear();
    read_line_records(text, [&](const LineRecord& found) {
      file.scan->take(found.value);
      const std::string agent_id = result_details(found.value)["agentId"].string_or("");
      for (const json::Value block : found.value["message"]["content"]) {
        const std::string call_id = block["tool_use_id"].string_or("");
        if (!agent_id.empty() && !call_id.empty()) agents_.emplace(call_id, agent_id);
        const std::string type = block["input"]["subagent_type"].string_or("");
        if (!type.empty()) called_types_.emplace(block["id"].string_or(""), type);
      }
    });
    return success();
  }));
  const SessionFacts& facts = lines.facts();
  file.goal = facts.goal;
  if (&file != &own_) return success();
  head_ = ImportedRun{.agent = "claude-code", .external_id = facts.session_id};
  const std::pair<const char*, const std::string&> labels[] = {
      {"version", facts.version}, {"cwd", facts.cwd}, {"git_branch", facts.git_branch}};
  for (const auto& [name, value] : labels) {
    if (!value.empty()) head_.labels.emplace_back(name, value);
  }
  return success();
}

Status ClaudeCodeSession::find_subagents(LineIdentities* identities) {
  const fs::path path(own_.path);
  const fs::path folder = path.parent_path() / path.stem() / subagents_folder;
  for (const std::string& name : jsonl_files(folder)) {
    const std::string stem = fs::path(name).stem().string();
    if (!stem.starts_with(subagent_prefix)) continue;
    File& file = subagents_[stem.substr(subagent_prefix.size())];
    file.path = name;
    RETURN_IF_ERROR(scan_file(file, identities));
    const auto about =
        read_named((fs::path(name).parent_path() / (stem + ".meta.json")).string(), agent_about_bytes_max);
    if (!about) continue;
    const auto document = json::parse(std::string_view(*about));
    if (document) file.agent = document->root()["agentType"].string_or("");
  }
  return success();
}

Status ClaudeCodeSession::each(const CarryOut& carry_out,
                               const std::function<void(std::int64_t, std::int64_t)>& progress) {
  progress_ = progress;
  ASSIGN_OR_RETURN(facts_, walk(own_, {}, carry_out));
  return success();
}

// Translates the lines of one file; `child` is the key of its run.
Result<SessionFacts> ClaudeCodeSession::walk(File& file, const std::string& child, const CarryOut& carry_out) {
  file.is_taken = true;
  ClaudeCodeLines lines(file.scan.get());
  std::vector<RunAction> actions;
  const auto take_line = [&](const Result<std::optional<TraceRecord>>& record, std::uint64_t number,
                             RecordReader& reader) -> Status {
    if (record)
      lines.take((*record)->text, number, actions);
    else
      lines.skip(number, record.error().message, actions);
    RETURN_IF_ERROR(take(actions, child, carry_out));
    if (progress_ && child.empty()) progress_(reader.position(), reader.size());
    return success();
  };
  RETURN_IF_ERROR(each_line(file.path, take_line));
  lines.finish(actions);
  RETURN_IF_ERROR(take(actions, child, carry_out));
  if (child.empty()) {
    for (const auto& [key, subagent] : subagents_) {
      if (!subagent.is_taken) RETURN_IF_ERROR(start_subagent(key, child, {}, carry_out));
    }
  }
  return lines.facts();
}

// Passes the actions of one file on as actions of the whole session.
Status ClaudeCodeSession::take(std::vector<RunAction>& actions, const std::string& child, const CarryOut& carry_out) {
  std::vector<RunAction> taken;
  for (RunAction& action : actions) {
    if (action.kind == RunAction::Kind::event && action.event.type == "x.claude_code.repaired") ++repaired_;
    const bool is_own = action.child.empty();
    if (!child.empty()) {
      action.parent = child;
      action.child = is_own ? child : child + "." + action.child;
    }
    const auto agent = is_own && !action.call_id.empty() && action.kind == RunAction::Kind::event
                           ? agents_.find(action.call_id)
                           : agents_.end();
    if (agent != agents_.end()) {
      const auto file = subagents_.find(agent->second);
      if (file != subagents_.end() && !file->second.is_taken) {
        RETURN_IF_ERROR(carry_out(taken));
        RETURN_IF_ERROR(start_subagent(agent->second, child, action.call_id, carry_out));
      }
    }
    taken.push_back(std::move(action));
  }
  actions.clear();
  return carry_out(taken);
}

Status ClaudeCodeSession::start_subagent(const std::string& key, const std::string& parent, const std::string& call_id,
                                         const CarryOut& carry_out) {
  File& file = subagents_.at(key);
  RunAction action;
  action.kind = RunAction::Kind::start_child;
  action.child = "agent-" + key;
  action.parent = parent;
  const auto called = called_types_.find(call_id);
  action.agent = !file.agent.empty() ? file.agent : called != called_types_.end() ? called->second : "subagent";
  action.goal = file.goal;
  action.call_id = call_id;
  action.sha256 = file.sha256;
  const std::string child = action.child;
  std::vector<RunAction> actions{std::move(action)};
  RETURN_IF_ERROR(carry_out(actions));
  ASSIGN_OR_RETURN(const SessionFacts facts, walk(file, child, carry_out));
  RunAction end;
  end.kind = RunAction::Kind::end_child;
  end.child = child;
  end.outcome = unknown_end;
  end.summary = !call_id.empty() ? "its call returned" : "no call of the session names it";
  actions.clear();
  actions.push_back(std::move(end));
  return carry_out(actions);
}

}  // namespace muniment::cli
