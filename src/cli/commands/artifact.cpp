// Implements the commands artifact put, get and list; snapshot take and list; and manifest show.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/connect/artifact_name.hpp"
#include "cli/connect/download.hpp"
#include "client/arguments.hpp"
#include "client/connect/pages.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

struct PutOptions {
  std::string file;
  std::string run;
  std::string step;
  std::string mime_type;
  std::string name;
  std::string metadata;
};

void declare_put(CLI::App& command, PutOptions& options) {
  command.add_option("FILE", options.file, "File to store; - reads standard input")->required();
  command.add_option("--run", options.run, "RUN");
  command.add_option("--step", options.step, "Step id");
  command.add_option("--name", options.name, "Name of the artifact (default: the file name without its folder)");
  command.add_option("--mime-type", options.mime_type, "MIME type (default: derived from the name)");
  command.add_option("--metadata", options.metadata, "Metadata, a JSON object");
}

// Returns the metadata with the file's name added if it has none. A name that is not UTF-8 is omitted.
Result<std::string> metadata_with_name(const PutOptions& options) {
  const std::string file = options.file == "-" ? std::string() : options.file.substr(options.file.rfind('/') + 1);
  const std::string& name = options.name.empty() ? file : options.name;
  ASSIGN_OR_RETURN(const std::string given, json_line(options.metadata.empty() ? "{}" : options.metadata));
  ASSIGN_OR_RETURN(const json::Document parsed, json::parse(given));
  const json::Value metadata = parsed.root();
  const bool has_name = metadata[artifact_name_member] && options.name.empty();
  if (name.empty() || has_name || !metadata.is(json::Kind::object) || first_invalid_utf8(name) != std::string::npos)
    return options.metadata.empty() ? std::string() : given;
  json::Writer out;
  out.begin_object().member(artifact_name_member, name);
  for (const json::Value member : metadata) {
    if (member.key() != artifact_name_member) out.raw_member(member.key(), member.source());
  }
  return std::move(out.end_object()).text();
}

Status put_artifact(Session& session, const PutOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  Upload upload;
  upload.run_id = run_id;
  upload.step_id = options.step;
  upload.mime_type = options.mime_type.empty() ? mime_type_of(options.file) : options.mime_type;
  ASSIGN_OR_RETURN(upload.metadata, metadata_with_name(options));
  ASSIGN_OR_RETURN(Client* const client, session.client());
  ASSIGN_OR_RETURN(const Message answer, options.file == "-" ? put_descriptor(*client, upload, STDIN_FILENO)
                                                             : put_file(*client, upload, options.file));
  if (session.printed_json(answer)) return success();
  const json::Value result = answer.result();
  session.out().line(fmt::format("artifact://{}/{}  {}  {}", run_id, result["artifact_id"].string_or(""),
                                 human_size(static_cast<std::uint64_t>(result["size_bytes"].as_int().value_or(0))),
                                 result["hash"].string_or("")));
  // A different type or metadata for the same bytes is discarded.
  if (result["duplicate"].as_bool().value_or(false))
    fmt::print(stderr, "already stored; the existing type and metadata are kept\n");
  return success();
}

struct GetOptions {
  std::string artifact;
  std::string output;
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
};

void declare_get(CLI::App& command, GetOptions& options) {
  command.add_option("ARTIFACT", options.artifact, "Artifact id or artifact://RUN/ID")->required();
  command.add_option("-o,--output", options.output, "Output file; - writes to standard output");
  command.add_option("--offset", options.offset, "First byte to return")->capture_default_str();
  command.add_option("--length", options.length, "Maximum number of bytes (default: to the end)");
}

std::string id_of(std::string_view artifact) {
  artifact = artifact.substr(0, artifact.find('#'));
  const std::size_t slash = artifact.rfind('/');
  return std::string(slash == std::string_view::npos ? artifact : artifact.substr(slash + 1));
}

// artifact://RUN/ID also names the run; an id alone matches an artifact of any run.
Status check_run(Client& client, std::string_view artifact) {
  constexpr std::string_view scheme = "artifact://";
  if (!artifact.starts_with(scheme)) return success();
  const std::string_view run_id =
      artifact.substr(scheme.size(), artifact.rfind('/') - std::min(artifact.rfind('/'), scheme.size()));
  const std::string id = id_of(artifact);
  ASSIGN_OR_RETURN(const Message answer,
                   client.call("artifact.get", fmt::format(R"({{"artifact_id":{},"length":0}})", json::quote(id))));
  if (answer.result()["run_id"].string_or("") == run_id) return success();
  return Error(Errc::not_found, fmt::format("run {} has no artifact {}", run_id, id));
}

Status get_artifact(Session& session, const GetOptions& options) {
  ASSIGN_OR_RETURN(Client* const client, session.client());
  RETURN_IF_ERROR(check_run(*client, std::string_view(options.artifact).substr(0, options.artifact.find('#'))));
  return save_artifact(*client, session.out(), id_of(options.artifact), options.offset,
                       options.length.value_or(INT64_MAX), options.output);
}

struct ListOptions {
  std::string run;
  std::string step;
  std::string name;
};

void declare_list(CLI::App& command, ListOptions& options) {
  command.add_option("--run", options.run, "RUN");
  command.add_option("--step", options.step, "Only artifacts of this step");
  command.add_option("--name", options.name, "Only artifacts whose name matches, such as '*.log'")
      ->type_name("PATTERN");
}

Status list_artifacts(Session& session, const ListOptions& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  const Output& out = session.out();
  Table table({"artifact", "step", "size", "type", "hash", "name"});
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("limit", limits::page_items_max);
  if (!options.step.empty()) params.member("step_id", options.step);
  params.end_object();
  RETURN_IF_ERROR(
      each_item(session, "artifact.list", params.text(), "artifacts", [&](const json::Value& item) -> Result<bool> {
        if (!fits_name(item, options.name)) return true;
        if (session.options.json) {
          out.json_line(item.source());
          return true;
        }
        const std::string hash = item["hash"].string_or("");
        const bool erased = hash.find_first_not_of('0') == std::string::npos;  // the row of an erased artifact remains
        table.add({item["artifact_id"].string_or(""), out.one_line(item["step_id"].string_or("")),
                   erased ? "-" : human_size(static_cast<std::uint64_t>(item["size_bytes"].as_int().value_or(0))),
                   out.one_line(item["mime_type"].string_or("")), erased ? "erased" : hash.substr(0, 16),
                   out.one_line(name_of_artifact(item))});
        return true;
      }));
  if (!session.options.json) table.print(out);
  return success();
}

struct RunOption {
  std::string run;
};

void declare_run(CLI::App& command, RunOption& options) {
  command.add_option("RUN,--run", options.run, "Run (default: MUNIMENT_RUN)");
}

Status take_snapshot(Session& session, const RunOption& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  ASSIGN_OR_RETURN(const Message answer,
                   session.call("snapshot.take", fmt::format("{{\"run_id\":{}}}", json::quote(run_id))));
  if (session.printed_json(answer)) return success();
  const json::Value result = answer.result();
  session.out().line(fmt::format("snap://{}/{}  {}  state {}", run_id, result["seq"].source(),
                                 human_size(static_cast<std::uint64_t>(result["size_bytes"].as_int().value_or(0))),
                                 result["state_hash"].string_or("")));
  return success();
}

Status list_snapshots(Session& session, const RunOption& options) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
  const Output& out = session.out();
  Table table({"seq", "size", "reason", "state", "taken"});
  const std::string params = "{\"run_id\":" + json::quote(run_id) + "}";
  RETURN_IF_ERROR(
      each_item(session, "snapshot.list", params, "snapshots", [&](const json::Value& item) -> Result<bool> {
        if (session.options.json) {
          out.json_line(item.source());
          return true;
        }
        const bool erased = item["erased"].as_bool().value_or(false);
        table.add({std::string(item["seq"].source()),
                   erased ? "-" : human_size(static_cast<std::uint64_t>(item["size_bytes"].as_int().value_or(0))),
                   out.one_line(item["reason"].string_or("")),
                   erased ? "erased" : item["state_hash"].string_or("").substr(0, 16),
                   item["created_at"].string_or("")});
        return true;
      }));
  if (!session.options.json) table.print(out);
  return success();
}

struct ManifestOptions {
  std::string manifest;
};

void declare_manifest(CLI::App& command, ManifestOptions& options) {
  command.add_option("MANIFEST", options.manifest, "Manifest id or manifest://ID")->required();
}

Status show_manifest(Session& session, const ManifestOptions& options) {
  ASSIGN_OR_RETURN(
      const Message answer,
      session.call("manifest.get", fmt::format("{{\"manifest_id\":{}}}", json::quote(id_of(options.manifest)))));
  if (session.printed_json(answer)) return success();
  session.out().line(session.out().safe_json(answer.result()["manifest"].source()));
  return success();
}

}  // namespace

void add_artifact_commands(CLI::App& app, Session& session) {
  CLI::App& artifact = add_group(app, "artifact", "Store, read, list and search artifacts");
  add_command<PutOptions>(session, artifact, "put", "Store a file as an artifact", declare_put, put_artifact);
  add_command<GetOptions>(session, artifact, "get", "Read an artifact or a slice of it", declare_get, get_artifact);
  add_command<ListOptions>(session, artifact, "list", "List the artifacts of a run", declare_list, list_artifacts);
  add_artifact_grep(artifact, session);
  CLI::App& snapshot = add_group(app, "snapshot", "Take and list snapshots of a run's state");
  add_command<RunOption>(session, snapshot, "take", "Take a snapshot now", declare_run, take_snapshot);
  add_command<RunOption>(session, snapshot, "list", "List the snapshots of a run", declare_run, list_snapshots);
  CLI::App& manifest = add_group(app, "manifest", "Show manifests: the contents of context windows, with reasons");
  add_command<ManifestOptions>(session, manifest, "show", "Show one manifest", declare_manifest, show_manifest);
}

}  // namespace muniment::cli
