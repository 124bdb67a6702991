#include "adapters/import/tree.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t tree_batch_events_max = 512;
constexpr std::size_t tree_batch_bytes_max = 512 * 1024;
constexpr std::size_t tree_bytes_max = 8 << 20;
constexpr std::size_t child_goal_bytes_max = 1'000;

}  // namespace

RunTree::RunTree(Client& client, std::string name, std::string sha256, std::string_view format, bool scrub,
                 std::string session)
    : client_(client),
      name_(std::move(name)),
      sha256_(std::move(sha256)),
      session_(std::move(session)),
      format_(format),
      scrub_(scrub) {
  root_ = std::make_unique<Target>(client_, imported_run_id(source_of({})), session_.empty() ? sha256_ : session_,
                                   scrub_, !session_.empty());
}

SourceFile RunTree::source_of(const std::string& child) const {
  return {child.empty() ? name_ : name_ + "." + child, sha256_, {}, session_};
}

Result<bool> RunTree::start(const ImportedRun& head) {
  return root_->recorder.start(start_params(head, source_of({}), format_));
}

Status RunTree::carry_out(std::vector<RunAction>& actions) {
  for (RunAction& action : actions) {
    switch (action.kind) {
      case RunAction::Kind::event: RETURN_IF_ERROR(add(target(action.child), std::move(action.event))); break;
      case RunAction::Kind::start_child: RETURN_IF_ERROR(start_child(action)); break;
      case RunAction::Kind::end_child: RETURN_IF_ERROR(end_child(action)); break;
    }
  }
  actions.clear();
  return success();
}

Status RunTree::end(const RunEnd& end) {
  RETURN_IF_ERROR(flush_all());
  return root_->recorder.end(end);
}

ImportTally RunTree::tally() const {
  ImportTally tally = root_->recorder.tally();
  tally.add(ended_tally_);
  return tally;
}

Status RunTree::add(Target& target, ImportedEvent event) {
  if (!target.wanted) return success();
  std::size_t bytes = event.body.size();
  for (const ImportedBlob& blob : event.blobs) bytes += blob.bytes.size();
  target.bytes += bytes;
  bytes_ += bytes;
  target.batch.push_back(std::move(event));
  if (bytes_ > tree_bytes_max) return flush_all();
  return target.batch.size() < tree_batch_events_max && target.bytes < tree_batch_bytes_max ? success() : flush(target);
}

Status RunTree::flush(Target& target) {
  if (target.batch.empty()) return success();
  RETURN_IF_ERROR(target.recorder.append(0, target.batch));
  target.batch.clear();
  bytes_ -= std::exchange(target.bytes, 0);
  return success();
}

Status RunTree::flush_all() {
  RETURN_IF_ERROR(flush(*root_));
  for (auto& [key, child] : children_) RETURN_IF_ERROR(flush(*child));
  return success();
}

// Flushes the parent's events first, since they contain the call that started the child.
Status RunTree::start_child(const RunAction& action) {
  Target& parent = target(action.parent);
  RETURN_IF_ERROR(flush(parent));
  const std::string& sha256 = action.sha256.empty() ? sha256_ : action.sha256;
  auto child =
      std::make_unique<Target>(client_, imported_run_id(source_of(action.child)),
                               session_.empty() ? sha256 : session_ + "/" + action.child, scrub_, !session_.empty());
  child->parent = action.parent;
  if (parent.recorder.is_unchanged() &&
      !client_.call("run.get", fmt::format(R"({{"run_id":{}}})", json::quote(child->recorder.run_id()))))
    RETURN_IF_ERROR(parent.recorder.reopen());
  json::Writer params;
  params.begin_object().member("run_id", child->recorder.run_id());
  params.key("agent").begin_object().member("name", name_or(action.agent, "subagent")).end_object();
  if (!action.goal.empty()) params.member("goal", preview(action.goal, child_goal_bytes_max));
  params.key("parent").begin_object().member("run_id", parent.recorder.run_id()).member("kind", "subagent");
  if (!action.call_id.empty()) params.member("call_id", action.call_id);
  params.end_object().key("import").begin_object().member("format", format_);
  params.member("sha256", sha256).member("importer", importer_name).end_object().end_object();
  ASSIGN_OR_RETURN(child->wanted, child->recorder.start(params.text()));
  children_[action.child] = std::move(child);
  return success();
}

Status RunTree::end_child(const RunAction& action) {
  Target& child = target(action.child);
  if (child.wanted) {
    RETURN_IF_ERROR(flush(child));
    RETURN_IF_ERROR(flush(target(child.parent)));
    RETURN_IF_ERROR(child.recorder.end({action.outcome, action.summary}));
  }
  ended_.push_back({child.recorder.run_id(), target(child.parent).recorder.run_id(),
                    child.wanted && !child.recorder.is_unchanged(), child.recorder.events(),
                    child.recorder.artifacts()});
  ended_tally_.add(child.recorder.tally());
  children_.erase(action.child);
  return success();
}

}  // namespace muniment::cli
