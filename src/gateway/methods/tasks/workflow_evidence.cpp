#include "gateway/methods/tasks/workflow_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "evidence/workflow/comparison.hpp"
#include "gateway/access.hpp"
#include "gateway/services.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::gateway::methods {
namespace {

namespace workflow = evidence::workflow;

workflow::Stored stored(const store::ArtifactRow& row) { return {row.artifact_id.text(), row.hash, row.size_bytes}; }

void write_stored(json::Writer& out, std::string_view name, const workflow::Stored& file) {
  out.key(name).begin_object().member("artifact_id", file.artifact_id).member("hash", to_hex(file.hash));
  out.member("size_bytes", file.size_bytes).end_object();
}

// Reads the facts; one object for each request.
class FactsReader {
 public:
  FactsReader(Call& call, const store::Run& run, const events::Event& started)
      : call_(call), run_(run), started_(started), said_(call.params["workflow"]) {}

  Result<WorkflowFacts> read() {
    out_.begin_object();
    if (const auto digest = said_["digest"].as_string()) out_.member("digest", facts_.digest = *digest);
    if (said_["coder_id"]) RETURN_IF_ERROR(read_coder());
    RETURN_IF_ERROR(read_files("specification"));
    RETURN_IF_ERROR(read_files("golden"));
    if (said_["pairs"]) RETURN_IF_ERROR(read_pairs());
    out_.end_object();
    facts_.json = std::move(out_).text();
    return std::move(facts_);
  }

 private:
  Status read_coder() {
    const std::string id = said_["coder_id"].string_or("");
    const Uuid coder = parse_uuid(id).value_or(Uuid{});
    const std::int64_t run_no = run_.view().run_no;
    ASSIGN_OR_RETURN(const auto began, call_.reader->event_by_id(run_no, coder));
    ASSIGN_OR_RETURN(const auto ended, call_.reader->event_by_id(run_no, make_uuid_v8("command.end/" + coder.text())));
    if (!began || began->type != "command.started" || !ended || !ended->body)
      return Error(Errc::not_found,
                   fmt::format("coder_id: run {} has no recorded command {} that has ended", run_.run_id, id));
    RETURN_IF_ERROR(call_.reader->confirm({*began, *ended}));
    if (began->actor != call_.caller.actor)
      return Error(Errc::denied, fmt::format("coder_id: command {} was recorded by {}", id, began->actor));
    if (ended->seq > started_.seq)
      return Error(Errc::conflict, "the tester's command started before the coder's command ended. Run it afterwards");
    coder_seq_ = began->seq;
    facts_.observed = began->origin == events::Origin::observed && ended->origin == events::Origin::observed;
    ASSIGN_OR_RETURN(const json::Document body, json::parse(*ended->body));
    out_.member("coder_id", coder.text());
    if (const json::Value isolation = body.root()["isolation"]) {
      facts_.coder_isolation = isolation["level"].string_or("");
      out_.raw_member("coder_isolation", isolation.source());
    }
    return success();
  }

  Status read_files(std::string_view kind) {
    const json::Value files = said_[kind];
    if (!files) return success();
    const bool listed = !said_["pairs"];  // a comparison has its pairs instead
    if (listed) out_.key(kind).begin_array();
    for (const json::Value file : files) {
      ASSIGN_OR_RETURN(const store::ArtifactRow row, artifact_of_run(call_, run_, file["artifact_id"].string_or("")));
      facts_.artifacts.push_back(row.artifact_id.text());
      if (kind == "specification") specification_.push_back(row.hash);
      if (!listed) continue;
      const std::string name = file["name"].string_or("");
      out_.begin_object().member("name", name).member("artifact_id", row.artifact_id.text());
      out_.member("hash", to_hex(row.hash)).member("size_bytes", row.size_bytes).end_object();
      facts_.text += fmt::format("{}: {}, {} bytes, sha256:{}\n", kind, name, row.size_bytes, to_hex(row.hash));
    }
    if (listed) out_.end_array();
    return success();
  }

  Status read_pairs() {
    if (coder_seq_ < 0)
      return Error(Errc::invalid_argument, "pairs: coder_id is missing. Send the command_id of the coder's command");
    std::vector<workflow::Compared> pairs;
    for (const json::Value said : said_["pairs"]) {
      workflow::Compared pair;
      pair.name = said["name"].string_or("");
      ASSIGN_OR_RETURN(const store::ArtifactRow golden, artifact_of_run(call_, run_, said["golden"].string_or("")));
      if (golden.seq > coder_seq_)
        return Error(Errc::conflict,
                     fmt::format("the golden file {} was stored after the coder's command started", pair.name));
      pair.golden = stored(golden);
      pair.told = std::ranges::find(specification_, golden.hash) != specification_.end();
      ASSIGN_OR_RETURN(pair.empty, is_empty(golden));
      facts_.artifacts.push_back(golden.artifact_id.text());
      if (said["output"]) {
        ASSIGN_OR_RETURN(const store::ArtifactRow output, artifact_of_run(call_, run_, said["output"].string_or("")));
        // An output that equals an earlier one of the run is the same artifact, so its place in the log shows nothing.
        pair.output = stored(output);
        facts_.artifacts.push_back(output.artifact_id.text());
        if (!pair.equal()) RETURN_IF_ERROR(search(golden, output, pair));
      }
      pairs.push_back(std::move(pair));
    }
    write_pairs(pairs);
    return success();
  }

  // Returns whether the file contains only white space. A large file is not read.
  Result<bool> is_empty(const store::ArtifactRow& row) {
    if (row.size_bytes > workflow::empty_bytes_max) return false;
    ASSIGN_OR_RETURN(const std::string text, call_.services.files.read(store::file_of(row), 0, row.size_bytes));
    return text.find_first_not_of(" \t\r\n") == std::string::npos;
  }

  Status search(const store::ArtifactRow& golden, const store::ArtifactRow& output, workflow::Compared& pair) {
    const auto reader = [this](const store::ArtifactRow& row) {
      return [this, &row](std::int64_t offset, std::int64_t length) -> Result<std::string> {
        if (call_.services.clock.monotonic() > call_.deadline)
          return Error(Errc::deadline_exceeded, "the outputs were not compared in time. Retry with a longer deadline");
        const std::int64_t left = std::max<std::int64_t>(0, row.size_bytes - offset);
        if (left == 0) return std::string();
        return call_.services.files.read(store::file_of(row), offset, std::min(left, length));
      };
    };
    ASSIGN_OR_RETURN(pair.first_difference, workflow::first_difference(reader(golden), reader(output)));
    return success();
  }

  void write_pairs(const std::vector<workflow::Compared>& pairs) {
    evidence::reports::Report& report = facts_.report.emplace();
    report.format = evidence::reports::golden_format;
    report.listed = true;
    report.complete = true;
    report.counts.total = std::ssize(pairs);
    facts_.golden_empty = std::ranges::all_of(pairs, &workflow::Compared::empty);
    facts_.golden_told = std::ranges::all_of(pairs, &workflow::Compared::told);
    out_.key("pairs").begin_array();
    for (const workflow::Compared& pair : pairs) {
      ++(pair.equal() ? report.counts.passed : report.counts.failed);
      if (!pair.equal()) report.failures.push_back(pair.name);
      out_.begin_object().member("name", pair.name).member("equal", pair.equal());
      if (pair.empty) out_.member("empty", true);
      if (pair.told) out_.member("told", true);
      write_stored(out_, "golden", pair.golden);
      if (pair.output) write_stored(out_, "output", *pair.output);
      if (pair.first_difference) out_.member("first_difference", *pair.first_difference);
      out_.end_object();
    }
    out_.end_array();
    facts_.text = workflow::describe(pairs);
  }

  Call& call_;
  const store::Run& run_;
  const events::Event& started_;
  const json::Value said_;
  json::Writer out_;
  WorkflowFacts facts_;
  std::vector<Hash> specification_;  // hashes of its files
  std::int64_t coder_seq_ = -1;      // seq of the coder's command.started; -1: no coder is named
};

}  // namespace

Result<store::ArtifactRow> artifact_of_run(Call& call, const store::Run& run, const std::string& id) {
  ASSIGN_OR_RETURN(const auto row, call.reader->artifact(parse_uuid(id).value_or(Uuid{})));
  if (!row || row->run_id != run.run_id)
    return Error(Errc::not_found, fmt::format("no artifact {} in run {}. Put it first: artifact.put", id, run.run_id));
  if (store::is_erased(*row)) return Error(Errc::conflict, fmt::format("artifact {} is erased", id));
  return *row;
}

Result<WorkflowFacts> workflow_facts(Call& call, const store::Run& run, const events::Event& started) {
  return FactsReader(call, run, started).read();
}

}  // namespace muniment::gateway::methods
