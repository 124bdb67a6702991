#include "cli/import/claude_code/claude_code.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/text.hpp"
#include "cli/bundle/import.hpp"
#include "cli/import/claude_code/claude_code_lines.hpp"
#include "cli/import/guess.hpp"
#include "cli/import/records.hpp"

namespace muniment::cli {
namespace {

// Part of the file that is searched for the first prompt.
constexpr std::uint64_t head_lines_max = 200;

class SessionImport {
 public:
  SessionImport(Client& client, const std::string& path, std::string sha256)
      : path_(path), tree_(client, std::filesystem::path(path).stem(), std::move(sha256), claude_code_format) {}

  Result<ImportedSession> run(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    ASSIGN_OR_RETURN(ImportedRun head, read_head());
    result_.run_id = tree_.run_id();
    ASSIGN_OR_RETURN(result_.added, tree_.start(head));
    if (!result_.added) return result_;
    if (const Status done = take_lines(progress); !done) return tree_.broke_off(done.error());
    result_.events = tree_.events();
    result_.artifacts = tree_.artifacts();
    result_.children = tree_.children();
    return result_;
  }

 private:
  Result<ImportedRun> read_head() {
    // Unknown lines of a session are kept, so a file of another format must be rejected here.
    RETURN_IF_ERROR(refuse_other_format(path_, claude_code_format));
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open_lines(path_));
    ClaudeCodeLines lines;
    std::vector<RunAction> ignored;
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
    const std::pair<const char*, const std::string&> labels[] = {
        {"version", facts.version}, {"cwd", facts.cwd}, {"git_branch", facts.git_branch}};
    for (const auto& [name, value] : labels) {
      if (!value.empty()) run.labels.emplace_back(name, value);
    }
    return run;
  }

  Status take_lines(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open_lines(path_));
    ClaudeCodeLines lines;
    std::vector<RunAction> actions;
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
    const SessionFacts& facts = lines.facts();
    const std::string summary = !facts.title.empty() ? facts.title
                                : facts.answered     ? "the model ended its last turn"
                                                     : "the file ends in the middle of a turn";
    return tree_.end({std::string(unknown_end), preview(summary, 1'000)});  // the end of a turn does not imply success
  }

  Status carry_out(std::vector<RunAction>& actions) {
    for (const RunAction& action : actions) {
      if (action.kind == RunAction::Kind::event && action.event.type == "x.claude_code.unreadable")
        ++result_.unreadable;
    }
    return tree_.carry_out(actions);
  }

  const std::string path_;
  RunTree tree_;
  ImportedSession result_;
};

}  // namespace

Result<ImportedSession> import_claude_code(Client& client, const std::string& path,
                                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  ASSIGN_OR_RETURN(std::string sha256, sha256_of_file(path));
  return SessionImport(client, path, std::move(sha256)).run(progress);
}

}  // namespace muniment::cli
