#include "cli/workflow/workflow.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

namespace workflow = evidence::workflow;

constexpr const char* spec_writer_name = "spec_writer";
constexpr const char* coder_name = "coder";
constexpr const char* tester_name = "tester";

template <typename Files>
void write_files(json::Writer& out, std::string_view kind, const Files& files) {
  out.key(kind).begin_array();
  for (const auto& file : files)
    out.begin_object().member("name", file.name).member("artifact_id", file.artifact_id).end_object();
  out.end_array();
}

// Returns the folders of PATH that every view has. Looking for a program in another one would be a refused access.
std::string visible_path(std::string_view path) {
  std::string visible;
  const std::vector<std::string> view = system_view();
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    const auto above = [&](const std::string& seen) { return folder == seen || folder.starts_with(seen + "/"); };
    if (std::none_of(view.begin(), view.end(), above)) continue;
    visible.append(visible.empty() ? "" : ":").append(folder);
  }
  return visible;
}

}  // namespace

Result<WorkflowResult> Workflow::run() {
  ASSIGN_OR_RETURN(const Workspace workspace, Workspace::create());
  result_.demanded = place_.demanded;
  RETURN_IF_ERROR(prepare(workspace));
  RETURN_IF_ERROR(write_specification(workspace));
  if (!stopped()) RETURN_IF_ERROR(code(workspace));
  if (!stopped()) RETURN_IF_ERROR(test());
  return std::move(result_);
}

// The programs are found, and the files of spec writer and tester are hashed, before the coder can change anything.
Status Workflow::prepare(const Workspace& workspace) {
  const auto resolve = [this](const char* name, const workflow::Step& step, ResolvedCommand& into) -> Status {
    auto resolved = resolve_command(step, folder_);
    if (!resolved) return std::move(resolved).error().within(name);
    into = std::move(*resolved);
    return success();
  };
  RETURN_IF_ERROR(resolve(spec_writer_name, spec_.spec_writer, spec_writer_));
  RETURN_IF_ERROR(resolve(coder_name, spec_.coder, coder_));
  RETURN_IF_ERROR(resolve(tester_name, spec_.tester, tester_));
  ASSIGN_OR_RETURN(result_.digest, digest_of({options_.specification, spec_.task}, folder_, spec_writer_, tester_));
  ASSIGN_OR_RETURN(specification_folder_, workspace.folder("specification", false));
  ASSIGN_OR_RETURN(golden_folder_, workspace.folder("golden", false));
  ASSIGN_OR_RETURN(coder_folder_, workspace.folder("implementation", true));
  ASSIGN_OR_RETURN(tester_folder_, workspace.folder("output", true));
  RETURN_IF_ERROR(workspace.folder("view", false));
  if (spec_.start.empty()) return success();
  return workspace.copy((std::filesystem::path(folder_) / spec_.start).string(), coder_folder_,
                        limits::workflow_implementation_files_max);
}

// Each step has a new environment with only the variables that the specification lists.
StepPlan Workflow::plan_of(const workflow::Step& step, const ResolvedCommand& command, std::string folder,
                           bool confined) const {
  StepPlan plan;
  plan.argv = command.argv;
  plan.confined = confined;
  plan.limits = step.limits;
  plan.isolation = place_.demanded;
  std::vector<std::string> names{"PATH", "LANG", "LC_ALL", "TZ"};
  names.insert(names.end(), spec_.environment.begin(), spec_.environment.end());
  for (const std::string& name : names) {
    const char* const value = std::getenv(name.c_str());
    if (value != nullptr && confined && name == "PATH") {
      plan.environment.push_back("PATH=" + visible_path(value));
    } else if (value != nullptr) {
      plan.environment.push_back(name + "=" + value);
    }
  }
  plan.environment.push_back("HOME=" + folder);
  plan.environment.push_back("TASK=" + spec_.task);
  plan.environment.push_back("SPECIFICATION=" + specification_folder_);
  plan.folder = std::move(folder);
  return plan;
}

Status Workflow::run_next(const char* name, const StepPlan& plan) {
  ASSIGN_OR_RETURN(RecordedStep step, run_recorded(place_, name, plan, stop_));
  if (!step.outcome.good()) {
    result_.reason = fmt::format("the {} failed: {}", name, step.ending());
    result_.interrupted = step.outcome.ended_by == "interrupted";
  }
  result_.steps.push_back(std::move(step));
  return success();
}

Status Workflow::write_specification(const Workspace& workspace) {
  StepPlan plan = plan_of(spec_.spec_writer, spec_writer_, folder_, false);
  plan.environment.push_back("GOLDEN=" + golden_folder_);
  plan.writes = {specification_folder_, golden_folder_};
  plan.private_folder = golden_folder_;
  RETURN_IF_ERROR(run_next(spec_writer_name, plan));
  ASSIGN_OR_RETURN(const bool after, changed());
  if (after && !stopped()) result_.reason = "the files of the workflow changed while the spec_writer ran";
  if (stopped()) return success();
  const Fd golden = std::move(result_.steps.back().outcome.private_folder);
  ASSIGN_OR_RETURN(specification_, store_files(specification_folder_, "specification"));
  ASSIGN_OR_RETURN(golden_, store_files(golden.open() ? path_of(golden) : golden_folder_, "golden"));
  // From here on, the golden files exist only as artifacts.
  RETURN_IF_ERROR(workspace.remove("golden"));
  RETURN_IF_ERROR(workspace.protect(specification_folder_));
  if (stopped()) return success();
  if (const Status complete = check_golden_files(); !complete) {
    result_.reason = complete.error().message;
    return success();
  }
  json::Writer files;
  files.begin_object().member("digest", result_.digest);
  write_files(files, "specification", specification_);
  write_files(files, "golden", golden_);
  return record_evidence("artifact", result_.steps.back(), std::move(files.end_object()).text());
}

// The digest states what was run only if its files are the same before and after each step.
Result<bool> Workflow::changed() {
  ASSIGN_OR_RETURN(const std::string now,
                   digest_of({options_.specification, spec_.task}, folder_, spec_writer_, tester_));
  return now != result_.digest;
}

// Each golden file has a pair, and each pair a golden file; otherwise a part would not be compared.
Status Workflow::check_golden_files() const {
  for (const workflow::Pair& pair : spec_.compare) {
    const auto same = [&](const StoredFile& file) { return file.name == pair.golden; };
    if (std::none_of(golden_.begin(), golden_.end(), same))
      return Error(Errc::not_found, fmt::format("the spec_writer wrote no golden file {}", pair.golden));
  }
  for (const StoredFile& file : golden_) {
    const auto same = [&](const workflow::Pair& pair) { return pair.golden == file.name; };
    if (std::none_of(spec_.compare.begin(), spec_.compare.end(), same))
      return Error(Errc::not_found, fmt::format("the golden file {} has no pair in [compare]", file.name));
  }
  return success();
}

Status Workflow::code(const Workspace&) {
  StepPlan plan = plan_of(spec_.coder, coder_, coder_folder_, true);
  plan.writes = {coder_folder_};
  plan.files_max = limits::workflow_implementation_files_max;
  plan.removed = {golden_folder_};
  plan.view.reads = coder_.files;
  plan.view.reads.push_back(specification_folder_);
  plan.view.writes = {coder_folder_};
  plan.view.network = spec_.network;
  plan.view.tmp_bytes_max = spec_.coder.limits.disk_bytes;
  plan.view_folder = std::filesystem::path(coder_folder_).parent_path().string() + "/view";
  RETURN_IF_ERROR(run_next(coder_name, plan));
  RETURN_IF_ERROR(record_evidence("workflow", result_.steps.back(), {}));
  if (stopped()) return success();
  const auto archive = archive_of(coder_folder_, limits::workflow_implementation_files_max);
  if (!archive && archive.error().code == Errc::unavailable) return archive.error();
  if (!archive) {  // too many files, or folders that are nested too deep
    result_.reason = fmt::format("the coder failed: {}", archive.error().message);
    return success();
  }
  ASSIGN_OR_RETURN(implementation_, store(*archive, coder_name, "implementation", "implementation.tar.zst"));
  return success();
}

Status Workflow::test() {
  ASSIGN_OR_RETURN(const bool before, changed());
  if (before) {
    result_.reason = "the files of the workflow changed while the coder ran";
    return success();
  }
  StepPlan plan = plan_of(spec_.tester, tester_, tester_folder_, true);
  plan.environment.push_back("IMPLEMENTATION=" + coder_folder_);
  plan.writes = {tester_folder_};
  plan.removed = {golden_folder_};
  plan.examined = coder_folder_;
  plan.view.reads = tester_.files;
  plan.view.reads.push_back(specification_folder_);
  plan.view.reads.push_back(coder_folder_);
  plan.view.writes = {tester_folder_};
  plan.view.tmp_bytes_max = spec_.tester.limits.disk_bytes;
  plan.view_folder = std::filesystem::path(coder_folder_).parent_path().string() + "/view";
  RETURN_IF_ERROR(run_next(tester_name, plan));
  ASSIGN_OR_RETURN(const bool after, changed());
  if (after) {
    result_.reason = "the files of the workflow changed while the tester ran";
    return success();
  }
  json::Writer pairs;
  pairs.begin_object().member("digest", result_.digest).member("coder_id", result_.steps[1].command_id);
  write_files(pairs, "specification", specification_);
  pairs.key("pairs").begin_array();
  for (const workflow::Pair& pair : spec_.compare) {
    const auto golden =
        std::find_if(golden_.begin(), golden_.end(), [&](const StoredFile& file) { return file.name == pair.golden; });
    ASSIGN_OR_RETURN(const std::string output, output_of(pair.output));
    pairs.begin_object().member("name", pair.golden).member("golden", golden->artifact_id);
    if (!output.empty()) pairs.member("output", output);
    pairs.end_object();
  }
  RETURN_IF_ERROR(
      record_evidence("validation", result_.steps.back(), std::move(pairs.end_array().end_object()).text()));
  if (options_.output.empty()) return success();
  return copy_out(coder_folder_, options_.output, limits::workflow_implementation_files_max);
}

Result<std::vector<Workflow::StoredFile>> Workflow::store_files(const std::string& folder, const char* what) {
  auto files = files_below(folder, limits::workflow_files_max);
  if (!files && files.error().code != Errc::system_error) {
    result_.reason = fmt::format("the spec_writer failed: {}", files.error().message);
    return std::vector<StoredFile>();
  }
  if (!files) return files.error();
  ASSIGN_OR_RETURN(const Fd root, open_folder(folder));
  std::vector<StoredFile> stored;
  for (const FolderFile& file : *files) {
    ASSIGN_OR_RETURN(const RegularFile source, open_regular_beneath(root, file.name));
    ASSIGN_OR_RETURN(std::string id, store(source.fd, spec_writer_name, what, file.name));
    stored.push_back({file.name, std::move(id)});
  }
  return stored;
}

Result<std::string> Workflow::store(const Fd& file, const std::string& step, const char* what,
                                    const std::string& name) {
  const Upload upload{place_.run_id, step, mime_type_of(name),
                      fmt::format("{{\"what\":\"{}\",\"name\":{}}}", what, json::quote(name))};
  ASSIGN_OR_RETURN(Client* const client, place_.session.client());
  ASSIGN_OR_RETURN(const Message answer, put_open_file(*client, upload, file.get()));
  return answer.result()["artifact_id"].string_or("");
}

// Stores an output of the tester. Returns an empty text if there is none.
Result<std::string> Workflow::output_of(const std::string& output) {
  const RecordedStep& tester = result_.steps.back();
  if (output == workflow::standard_output) {
    if (!tester.stdout_artifact.empty()) return tester.stdout_artifact;
    ASSIGN_OR_RETURN(const Fd empty, temporary_file());
    return store(empty, tester_name, "output", output);
  }
  ASSIGN_OR_RETURN(const Fd root, open_folder(tester_folder_));
  const auto file = open_regular_beneath(root, output);
  if (!file) return std::string();
  return store(file->fd, tester_name, "output", output);
}

Status Workflow::record_evidence(const std::string& type, const RecordedStep& step, const std::string& facts) {
  json::Writer params;
  params.begin_object().member("run_id", place_.run_id).member("step_id", step.name).member("type", type);
  params.member("command_id", step.command_id);
  if (!options_.task.empty()) params.member("task_id", options_.task);
  if (!facts.empty()) params.raw_member("workflow", facts);
  if (type == "validation") params.key("artifacts").begin_array().string(implementation_).end_array();
  params.key("_meta").begin_object().member("idempotency_key", type + " evidence of " + step.command_id);
  params.end_object().end_object();
  ASSIGN_OR_RETURN(const Message answer, place_.session.call("evidence.record", params.text()));
  const std::string id = answer.result()["evidence_id"].string_or("");
  result_.evidence.push_back({type, id});
  if (type != "validation") return success();
  if (result_.reason.empty()) result_.reason = answer.result()["reason"].string_or("");
  result_.passed = step.outcome.good() && answer.result()["passed"].as_bool().value_or(false);
  return read_comparison(id);
}

Status Workflow::read_comparison(const std::string& evidence_id) {
  ASSIGN_OR_RETURN(const Message answer,
                   place_.session.call("evidence.export", fmt::format("{{\"evidence_id\":\"{}\",\"run_id\":{}}}",
                                                                      evidence_id, json::quote(place_.run_id))));
  const json::Value content = answer.result()["record"]["content"];
  result_.comparison = content["text"].as_string().value_or(content.string_or(""));
  return success();
}

}  // namespace muniment::cli
