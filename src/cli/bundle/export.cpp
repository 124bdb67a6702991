#include "cli/bundle/export.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/base64.hpp"
#include "base/crypto/sha256.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/files/file.hpp"
#include "base/files/tar_archive.hpp"
#include "cli/bundle/rows.hpp"
#include "cli/report/source.hpp"
#include "cli/verifier.hpp"
#include "client/connect/upload.hpp"
#include "events/run_proof.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t spool_piece_bytes = 1 << 20;
constexpr std::size_t nodes_per_request = 4'096;
constexpr std::string_view readme_text =
    R"(# The run {0}

Events of one run of an AI agent, with its files and a proof that they were not changed after they were recorded.

- Log: {1}
- Checkpoint: {2} events, {4}
- Events of this run: {3}, up to seq {8}
- The run: {9}

`report.html` is a summary for readers. The exporter wrote it; the signature does not cover it, and it may include events after the
checkpoint. The proof covers `events.jsonl` and, through it, the other `.jsonl` files and `artifacts/`.

{5}:

    muniment-verify --bundle FILE.muniment.tar.zst {6}

`muniment_verify.py --bundle FILE.muniment.tar.zst{7}` verifies it without Muniment. In Muniment's documentation,
docs/auditor.md explains the verdict and its limits to a reader of one bundle, and docs/format.md (Run bundles) specifies the
format, for independent verifiers.

Exit status 0: every part of this bundle is unchanged and signed by that key. 1: a part was changed. 2: no part was changed, but no
key or a key other than yours signed it; the message names both. 4: the file is not a bundle.

The verdict also states how the run ended. `run OPEN at the end of this bundle` means that the bundle has no end of the run: the run
was still open at the export, or the events after these were left out.
)";
constexpr std::string_view signed_text =
    "To verify it, obtain the log's verifier key from a trusted source (the member `keys` is only the exporter's claim)";
constexpr std::string_view unsigned_text = "It is not signed: its integrity can be checked, but not its origin";
constexpr std::string_view row_parts[] = {"artifacts", "manifests", "snapshots", "claims", "evidence"};

// A member of the bundle with its entry in bundle.json.
struct Member {
  std::string path;
  std::string sha256;
  std::int64_t size_bytes = 0;
};

// A member whose size is unknown until it is complete; it is kept in a temporary file.
class LineSpool {
 public:
  static Result<LineSpool> open(std::string path) {
    LineSpool spool;
    spool.member_.path = std::move(path);
    ASSIGN_OR_RETURN(spool.file_, temporary_file());
    return spool;
  }

  Status add(std::string_view bytes) {
    hash_.update(bytes);
    member_.size_bytes += static_cast<std::int64_t>(bytes.size());
    return write_all(file_.get(), bytes, "a temporary file");
  }

  const Member& complete() {
    member_.sha256 = to_hex(hash_.finish());
    return member_;
  }

  // Reads the file in pieces from its beginning.
  template <typename Take>
  Status read(Take take) const {
    for (std::int64_t offset = 0; offset < member_.size_bytes;) {
      ASSIGN_OR_RETURN(const std::string piece, read_at(file_, offset, spool_piece_bytes));
      if (piece.empty()) return Error(Errc::system_error, "a temporary file was truncated");
      RETURN_IF_ERROR(take(std::string_view(piece)));
      offset += static_cast<std::int64_t>(piece.size());
    }
    return success();
  }

 private:
  Fd file_;
  Sha256 hash_;
  Member member_;
};

// A file that gets its name when it is complete and synced, and is removed otherwise.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)), draft_(path_ + ".XXXXXX") {
    file_ = Fd(::mkostemp(draft_.data(), O_CLOEXEC));
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_.open()) ::unlink(draft_.c_str());
  }
  bool open() const { return file_.open(); }
  int descriptor() const { return file_.get(); }
  // Returns the temporary name in a form that no program mistakes for an option.
  std::string draft() const { return draft_.starts_with('-') ? "./" + draft_ : draft_; }

  Result<std::int64_t> keep() {
    struct stat status {};
    if (::fsync(file_.get()) != 0 || ::fstat(file_.get(), &status) != 0 ||
        ::rename(draft_.c_str(), path_.c_str()) != 0) {
      return file_error("writing", path_, errno);
    }
    file_.reset();
    return static_cast<std::int64_t>(status.st_size);
  }

 private:
  const std::string path_;
  std::string draft_;
  Fd file_;
};

class BundleExport {
 public:
  BundleExport(Client& client, const BundleOrder& order) : client_(client), order_(order) {}

  Result<ExportedBundle> run() {
    RETURN_IF_ERROR(read_checkpoint());
    NewFile file(order_.path);
    if (!file.open()) return file_error("creating", order_.path, errno);
    RETURN_IF_ERROR(read_events());
    RETURN_IF_ERROR(read_nodes());
    for (const std::string_view part : row_parts) RETURN_IF_ERROR(read_rows(part));
    RETURN_IF_ERROR(write_for_people());
    RETURN_IF_ERROR(name_artifacts());
    ASSIGN_OR_RETURN(TarWriter tar, TarWriter::create(file.descriptor(), order_.path));
    RETURN_IF_ERROR(write_members(tar));
    RETURN_IF_ERROR(tar.finish());
    RETURN_IF_ERROR(check(file.draft()));
    ASSIGN_OR_RETURN(result_.bundle_bytes, file.keep());
    RETURN_IF_ERROR(client_.call("bundle.close", fmt::format(R"({{"run_id":{},"from_seq":{},"to_seq":{}}})",
                                                             json::quote(order_.run_id), first_seq_, last_seq_)));
    return result_;
  }

 private:
  Status read_checkpoint() {
    const std::string run = fmt::format("{{\"run_id\":{}}}", json::quote(order_.run_id));
    ASSIGN_OR_RETURN(const Message known, client_.call("run.get", run));
    run_no_ = known.result()["run"]["run_no"].as_int().value_or(-1);
    if (const auto log_no = known.result()["log_no"].as_int()) log_no_ = fmt::format(",\"log_no\":{}", *log_no);
    ASSIGN_OR_RETURN(const Message log,
                     client_.call("audit.checkpoint", log_no_.empty() ? "{}" : "{" + log_no_.substr(1) + "}"));
    std::string note = order_.checkpoint;
    if (note.empty()) {
      ASSIGN_OR_RETURN(note, newest_checkpoint(log.result()["origin"].string_or("")));
    }
    ASSIGN_OR_RETURN(const BundleCheckpoint checkpoint, read_bundle_checkpoint(note));
    if (log.result()["origin"].string_or("") != checkpoint.origin) {
      return Error(Errc::invalid_argument, fmt::format("the checkpoint belongs to {}, but this log is {}",
                                                       checkpoint.origin, log.result()["origin"].string_or("")));
    }
    result_.origin = checkpoint.origin;
    result_.size = checkpoint.size;
    result_.is_signed = checkpoint.is_signed;
    ASSIGN_OR_RETURN(result_.signature_holds, signature_holds(note, checkpoint.origin, log.result()["keys"]));
    ASSIGN_OR_RETURN(LineSpool kept, LineSpool::open("checkpoint"));
    RETURN_IF_ERROR(kept.add(note));
    keep(std::move(kept));
    ASSIGN_OR_RETURN(LineSpool keys, LineSpool::open("keys"));
    for (const json::Value key : log.result()["keys"]) RETURN_IF_ERROR(keys.add(key.string_or("") + "\n"));
    keep(std::move(keys));
    return success();
  }

  // A proof of the run's last event waits for a checkpoint that covers the event, and contains it.
  Result<std::string> newest_checkpoint(const std::string& origin) {
    ASSIGN_OR_RETURN(
        const Message last,
        client_.call("event.list",
                     fmt::format(R"({{"run_id":{},"unconfirmed":true,"order":"desc","limit":1,"fields":["seq"]}})",
                                 json::quote(order_.run_id))));
    const json::Value events = last.result()["events"];
    if (events.size() == 0) return Error(Errc::not_found, "the run " + order_.run_id + " has no event");
    ASSIGN_OR_RETURN(
        const Message answer,
        client_.call("audit.prove", fmt::format("{{\"seq\":{}{}}}", (*events.begin())["seq"].source(), log_no_)));
    const json::Value proof = answer.result();
    const std::string file = proof["proof"].string_or("");
    if (const std::size_t end = file.find("\n\n"); end != std::string::npos) return file.substr(end + 2);
    // Without a key, only the text of the note is written, without a signature.
    const auto root = hash_from_hex(proof["root"].string_or(""));
    if (!root) return Error(Errc::system_error, "the daemon's proof of the run lacks a root");
    return Checkpoint{origin, proof["size"].as_int().value_or(0), *root}.text();
  }

  // Returns whether a key of the log signed the checkpoint. Errors: corrupt if the signature of such a key is invalid.
  Result<bool> signature_holds(const std::string& note, const std::string& origin, const json::Value& named) const {
    if (!result_.is_signed) return false;
    std::vector<VerifierKey> keys;
    for (const json::Value key : named) {
      if (auto parsed = VerifierKey::parse(key.string_or(""))) keys.push_back(*std::move(parsed));
    }
    ASSIGN_OR_RETURN(const Note parsed, Note::parse(note));
    const auto signers = signers_of(parsed, keys);
    if (!signers) return Error(signers.error()).within("the checkpoint");
    return std::ranges::any_of(
        *signers, [&](const Signed& one) { return one.key->type == KeyType::ed25519 && one.key->name == origin; });
  }

  template <typename Take>
  Status read_part(std::string_view part, LineSpool& spool, Take take) {
    for (std::int64_t from = 0; from >= 0;) {
      ASSIGN_OR_RETURN(const Message page,
                       client_.call("bundle.read", fmt::format(R"({{"run_id":{},"size":{},"part":"{}","from_seq":{}}})",
                                                               json::quote(order_.run_id), result_.size, part, from)));
      RETURN_IF_ERROR(spool.add(page.raw));
      RETURN_IF_ERROR(for_each_line(page.raw, take));
      from = page.result()["next_seq"].as_int().value_or(-1);
    }
    return success();
  }

  Status read_events() {
    ASSIGN_OR_RETURN(LineSpool spool, LineSpool::open("events.jsonl"));
    RETURN_IF_ERROR(read_part("events", spool, [this](std::string_view line) { return note_event(line); }));
    if (result_.events == 0) {
      return Error(Errc::invalid_argument,
                   fmt::format("the run {} has no event below {}, the size of the checkpoint. Use a newer checkpoint",
                               order_.run_id, result_.size));
    }
    std::erase_if(announced_, [this](std::int64_t seq) { return without_body_.contains(seq); });
    if (!announced_.empty()) {
      return Error(
          Errc::unavailable,
          fmt::format(
              "an erasure in run {} is in progress (seq {} is announced but not erased). Export the run again when it has ended",
              order_.run_id, *announced_.begin()));
    }
    keep(std::move(spool));
    return success();
  }

  Status note_event(std::string_view line) {
    ASSIGN_OR_RETURN(const json::Document document, json::parse(line));
    const json::Value event = document.root();
    const std::int64_t seq = event["seq"].as_int().value_or(-1);
    if (!leaves_.add(seq))
      return Error(Errc::corrupt,
                   fmt::format("seq {} of run {} is out of order. Run muniment-verify", seq, order_.run_id));
    if (result_.events++ == 0) first_seq_ = seq;
    last_seq_ = seq;
    if (event["salt"].is(json::Kind::null)) without_body_.insert(seq);
    const std::string type = event["type"].string_or("");
    const bool erasure = type == "event.redacted" || type == "artifact.redacted";
    if (!erasure && !type.starts_with("run.")) return success();
    const std::string text = event["body"].string_or("{}");
    ASSIGN_OR_RETURN(const json::Document body, json::parse(text));
    end_.follow(type, seq, body.root());
    if (type == "event.redacted") announced_.insert(body.root()["seq"].as_int().value_or(-1));
    if (type == "artifact.redacted") erased_.insert(body.root()["artifact_id"].string_or(""));
    return success();
  }

  Status read_rows(std::string_view part) {
    ASSIGN_OR_RETURN(LineSpool spool, LineSpool::open(std::string(part) + ".jsonl"));
    RETURN_IF_ERROR(read_part(part, spool, [this, part](std::string_view line) -> Status {
      if (part != "artifacts") return success();
      ASSIGN_OR_RETURN(const json::Document row, json::parse(line));
      Artifact artifact;
      artifact.id = row.root()["artifact_id"].string_or("");
      artifact.sha256 = row.root()["hash"].string_or("");
      artifact.size_bytes = row.root()["size_bytes"].as_int().value_or(-1);
      artifacts_.push_back(std::move(artifact));
      return success();
    }));
    keep(std::move(spool));
    return success();
  }

  Status read_nodes() {
    ASSIGN_OR_RETURN(LineSpool spool, LineSpool::open("nodes"));
    const std::vector<events::TreePlace> places = events::run_proof_places(leaves_, result_.size);
    for (std::size_t done = 0; done < places.size(); done += nodes_per_request) {
      const std::size_t end = std::min(places.size(), done + nodes_per_request);
      json::Writer params;
      params.begin_object().key("nodes").begin_array();
      for (std::size_t i = done; i < end; ++i) {
        params.begin_object().member("level", places[i].level).member("index", places[i].index).end_object();
      }
      params.end_array();
      ASSIGN_OR_RETURN(const Message answer, client_.call("bundle.nodes", params.text() + log_no_ + "}"));
      std::string lines;
      std::size_t i = done;
      for (const json::Value item : answer.result()["hashes"]) {
        const auto hash = hash_from_hex(item.string_or(""));
        if (!hash || i == end) break;
        lines += fmt::format("{} {} {}\n", places[i].level, places[i].index, to_base64(view(*hash)));
        ++i;
      }
      if (i != end) return Error(Errc::system_error, "the daemon's reply lacks hashes of some nodes");
      RETURN_IF_ERROR(spool.add(lines));
    }
    keep(std::move(spool));
    return success();
  }

  Status keep_text(std::string_view name, std::string_view text) {
    ASSIGN_OR_RETURN(LineSpool spool, LineSpool::open(std::string(name)));
    RETURN_IF_ERROR(spool.add(text));
    keep(std::move(spool));
    return success();
  }

  Status write_for_people() {
    const bool is_signed = result_.is_signed;
    RETURN_IF_ERROR(
        keep_text("README.md", fmt::format(readme_text, order_.run_id, result_.origin, result_.size, result_.events,
                                           is_signed ? "signed" : "not signed", is_signed ? signed_text : unsigned_text,
                                           is_signed ? "--key LOG.PUB" : "--unsigned-ok",
                                           is_signed ? " --key LOG.PUB" : "", last_seq_, end_.text())));
    if (run_no_ == 0) return keep_text("report.html", "");  // the log's own run has no report
    const std::unique_ptr<ReportSource> source = daemon_report_source(client_, order_.run_id);
    ASSIGN_OR_RETURN(const ReportData data, collect_report(*source));
    return keep_text("report.html", report_html(report_document(data)));
  }

  struct Artifact {
    std::string id;
    std::string sha256;
    std::int64_t size_bytes = 0;
  };

  void keep(LineSpool spool) {
    members_.push_back(spool.complete());
    spools_.push_back(std::move(spool));
  }

  // Names existing artifacts only; an erased artifact has only its row.
  Status name_artifacts() {
    result_.erased = static_cast<std::int64_t>(
        std::erase_if(artifacts_, [this](const Artifact& artifact) { return erased_.contains(artifact.id); }));
    result_.artifacts = static_cast<std::int64_t>(artifacts_.size());
    for (const Artifact& artifact : artifacts_) {
      members_.push_back({"artifacts/" + artifact.id, artifact.sha256, artifact.size_bytes});
    }
    return success();
  }

  std::string header() const {
    json::Writer out;
    out.begin_object().member("format", bundle_format).member("version", 2);
    out.member("log_id", result_.origin.substr(result_.origin.rfind('/') + 1)).member("origin", result_.origin);
    out.member("run_id", order_.run_id).member("run_no", run_no_).member("size", result_.size);
    out.member("events", result_.events).member("exported_at", format_time(Clock().now()));
    out.member("tool", "muniment " MUNIMENT_VERSION).key("files").begin_array();
    for (const Member& member : members_) {
      out.begin_object().member("path", member.path).member("sha256", member.sha256);
      out.member("size_bytes", member.size_bytes).end_object();
    }
    return out.end_array().end_object().text() + "\n";
  }

  Status write_members(TarWriter& tar) {
    const std::string first = header();
    RETURN_IF_ERROR(tar.begin({"bundle.json", static_cast<std::int64_t>(first.size())}));
    RETURN_IF_ERROR(tar.write(first));
    for (std::size_t i = 0; i < spools_.size(); ++i) {
      RETURN_IF_ERROR(tar.begin({members_[i].path, members_[i].size_bytes}));
      RETURN_IF_ERROR(spools_[i].read([&tar](std::string_view piece) { return tar.write(piece); }));
    }
    for (const Artifact& artifact : artifacts_) RETURN_IF_ERROR(write_artifact(tar, artifact));
    return success();
  }

  Status write_artifact(TarWriter& tar, const Artifact& artifact) {
    RETURN_IF_ERROR(tar.begin({"artifacts/" + artifact.id, artifact.size_bytes}));
    Sha256 hash;
    for (std::int64_t offset = 0; offset < artifact.size_bytes;) {
      const auto slice = client_.call(
          "artifact.get", fmt::format(R"({{"artifact_id":"{}","offset":{},"encoding":"raw"}})", artifact.id, offset));
      if (!slice) return Error(slice.error()).within("nothing was exported");
      if (slice->raw.empty()) break;
      hash.update(slice->raw);
      RETURN_IF_ERROR(tar.write(slice->raw));
      offset += static_cast<std::int64_t>(slice->raw.size());
    }
    if (to_hex(hash.finish()) == artifact.sha256) return success();
    return Error(
        Errc::corrupt,
        fmt::format("artifact {} does not match the hash in its event; nothing was exported. See: muniment recover {}",
                    artifact.id, order_.run_id));
  }

  // Verifies everything except the signature, with the program that readers of the bundle use.
  Status check(const std::string& draft) const {
    ASSIGN_OR_RETURN(const BundleVerdict verdict, verify_bundle(draft, ""));
    if (verdict.verified() || verdict.is_unsigned()) return success();
    return Error(
        verdict.exit_code == 1 ? Errc::corrupt : Errc::unavailable,
        fmt::format("nothing was exported: the bundle of run {} fails verification. muniment-verify reports: {}",
                    order_.run_id, verdict_words(verdict)));
  }

  Client& client_;
  const BundleOrder& order_;
  ExportedBundle result_;
  std::int64_t run_no_ = -1;
  std::string log_no_;  // ",\"log_no\":N" for a run of a closed log
  std::int64_t first_seq_ = 0;
  std::int64_t last_seq_ = 0;
  ReportEnd end_;
  events::LeafSpans leaves_;
  std::set<std::string> erased_;
  std::set<std::int64_t> announced_, without_body_;  // seqs whose erasure is announced, and seqs without a body
  std::vector<Artifact> artifacts_;
  std::vector<LineSpool> spools_;
  std::vector<Member> members_;  // spools first, then artifacts
};

}  // namespace

Result<ExportedBundle> export_bundle(Client& client, const BundleOrder& order) {
  return BundleExport(client, order).run();
}

}  // namespace muniment::cli
