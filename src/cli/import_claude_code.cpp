#include "cli/import_claude_code.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "base/text.hpp"
#include "cli/bundle_import.hpp"
#include "cli/claude_code_lines.hpp"
#include "cli/import_records.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t session_batch_events_max = 512;
constexpr std::size_t session_batch_bytes_max = 512 * 1024;
// Where the session's first prompt is looked for.
constexpr std::uint64_t head_lines_max = 200;

std::string child_name(const std::string& stem, const std::string& key) { return stem + "." + key; }

class SessionImport {
 public:
  SessionImport(Client& client, const std::string& path, std::string sha256)
      : client_(client), path_(path), stem_(std::filesystem::path(path).stem()), sha256_(std::move(sha256)) {}

  Result<ImportedSession> run(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    ASSIGN_OR_RETURN(ImportedRun head, read_head());
    const SourceFile source{stem_, sha256_, {}};
    result_.run_id = imported_run_id(source);
    session_ = std::make_unique<Target>(client_, result_.run_id, sha256_);
    ASSIGN_OR_RETURN(result_.added, session_->recorder.start(start_params(head, source, claude_code_format)));
    if (!result_.added) return result_;
    if (const Status done = take_lines(progress); !done) return session_->recorder.broke_off(done.error());
    return count();
  }

 private:
  // A run and what waits to be appended to it.
  struct Target {
    Target(Client& client, std::string run_id, const std::string& sha256) : recorder(client, std::move(run_id), sha256) {}
    ImportRecorder recorder;
    std::vector<ImportedEvent> batch;
    std::size_t bytes = 0;
    bool wanted = true;   // false: this child is there already
  };

  Result<ImportedRun> read_head() {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open_lines(path_));
    ClaudeCodeLines lines;
    std::vector<SessionAction> ignored;
    for (std::uint64_t read = 0; read < head_lines_max && lines.facts().goal.empty();) {
      const auto record = reader.next();
      if (!record && record.error().code == Errc::too_large) continue;
      if (!record) return record.error();
      if (!*record) break;
      lines.take((*record)->text, (*record)->line, ignored);
      ignored.clear();
      ++read;
    }
    const SessionFacts& facts = lines.facts();
    ImportedRun run{.agent = "claude-code", .goal = facts.goal, .external_id = facts.session_id};
    const std::pair<const char*, const std::string&> labels[] = {{"version", facts.version}, {"cwd", facts.cwd}, {"git_branch", facts.git_branch}};
    for (const auto& [name, value] : labels) {
      if (!value.empty()) run.labels.emplace_back(name, value);
    }
    return run;
  }

  Status take_lines(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open_lines(path_));
    ClaudeCodeLines lines;
    std::vector<SessionAction> actions;
    for (std::uint64_t last = 0;;) {
      const auto record = reader.next();
      if (!record && record.error().code != Errc::too_large) return record.error();
      if (!record) {
        lines.skip(last + 1, record.error().message, actions);
      } else if (*record) {
        last = (*record)->line;
        lines.take((*record)->text, last, actions);
      } else {
        break;
      }
      RETURN_IF_ERROR(carry_out(actions));
      progress(reader.position(), reader.size());
    }
    lines.finish(actions);
    RETURN_IF_ERROR(carry_out(actions));
    RETURN_IF_ERROR(flush(*session_));
    const SessionFacts& facts = lines.facts();
    const std::string summary = !facts.title.empty() ? facts.title : facts.answered ? "the model ended its last turn" : "the file ends within a turn";
    return session_->recorder.end(facts.answered ? "success" : "abandoned", preview(summary, 1'000));
  }

  Status carry_out(std::vector<SessionAction>& actions) {
    for (SessionAction& action : actions) {
      if (action.kind == SessionAction::Kind::start_child) {
        RETURN_IF_ERROR(start_child(action));
      } else if (action.kind == SessionAction::Kind::end_child) {
        RETURN_IF_ERROR(end_child(action));
      } else {
        if (action.event.type == "x.claude_code.unreadable") ++result_.unreadable;
        Target& target = action.child.empty() ? *session_ : *children_.at(action.child);
        RETURN_IF_ERROR(add(target, std::move(action.event)));
      }
    }
    actions.clear();
    return success();
  }

  Status add(Target& target, ImportedEvent event) {
    if (!target.wanted) return success();
    target.bytes += event.body.size();
    target.batch.push_back(std::move(event));
    return target.batch.size() < session_batch_events_max && target.bytes < session_batch_bytes_max ? success() : flush(target);
  }

  static Status flush(Target& target) {
    RETURN_IF_ERROR(target.recorder.append(0, target.batch));
    target.batch.clear();
    target.bytes = 0;
    return success();
  }

  // What the session's run holds goes before: its call is the parent of the child.
  Status start_child(const SessionAction& action) {
    RETURN_IF_ERROR(flush(*session_));
    const SourceFile source{child_name(stem_, action.child), sha256_, {}};
    auto target = std::make_unique<Target>(client_, imported_run_id(source), sha256_);
    json::Writer params;
    params.begin_object().member("run_id", imported_run_id(source));
    params.key("agent").begin_object().member("name", name_or(action.agent, "subagent")).end_object();
    if (!action.goal.empty()) params.member("goal", preview(action.goal, 1'000));
    params.key("parent").begin_object().member("run_id", result_.run_id).member("kind", "subagent");
    if (!action.call_id.empty()) params.member("call_id", action.call_id);
    params.end_object().key("import").begin_object().member("format", claude_code_format);
    params.member("sha256", sha256_).member("importer", importer_name).end_object().end_object();
    ASSIGN_OR_RETURN(target->wanted, target->recorder.start(params.text()));
    children_[action.child] = std::move(target);
    ++result_.children;
    return success();
  }

  Status end_child(const SessionAction& action) {
    Target& target = *children_.at(action.child);
    if (!target.wanted) return success();
    RETURN_IF_ERROR(flush(target));
    RETURN_IF_ERROR(flush(*session_));
    return target.recorder.end(action.outcome, action.outcome == "abandoned" ? "the session does not say how it ended" : "its call returned");
  }

  ImportedSession count() {
    result_.events = session_->recorder.events();
    result_.artifacts = session_->recorder.artifacts();
    for (const auto& [key, child] : children_) {
      result_.events += child->recorder.events();
      result_.artifacts += child->recorder.artifacts();
    }
    return result_;
  }

  Client& client_;
  const std::string path_;
  const std::string stem_;
  const std::string sha256_;
  ImportedSession result_;
  std::unique_ptr<Target> session_;
  std::map<std::string, std::unique_ptr<Target>> children_;
};

}  // namespace

Result<ImportedSession> import_claude_code(Client& client, const std::string& path,
                                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  ASSIGN_OR_RETURN(std::string sha256, sha256_of_file(path));
  return SessionImport(client, path, std::move(sha256)).run(progress);
}

}  // namespace muniment::cli
