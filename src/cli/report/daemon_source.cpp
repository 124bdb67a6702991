// Reads a run from the daemon page by page for its report.
#include <fmt/format.h>

#include <algorithm>

#include "base/crypto/signed_note.hpp"
#include "cli/report/source.hpp"
#include "client/connect/pages.hpp"
#include "events/merkle_proof.hpp"

namespace muniment::cli {
namespace {

class DaemonReport : public ReportSource {
 public:
  DaemonReport(Client& client, std::string run_id) : client_(client), run_id_(std::move(run_id)) {}

  Status read_run(ReportData& data) override {
    data.run_id = run_id_;
    ASSIGN_OR_RETURN(const Message answer, client_.call("run.get", asked()));
    if (const auto log_no = answer.result()["log_no"].as_int()) log_no_ = fmt::format(",\"log_no\":{}", *log_no);
    ASSIGN_OR_RETURN(const Message log,
                     client_.call("audit.checkpoint", log_no_.empty() ? "{}" : "{" + log_no_.substr(1) + "}"));
    data.custody.origin_line = log.result()["origin"].string_or("");
    data.log_id = data.custody.origin_line.substr(data.custody.origin_line.rfind('/') + 1);
    for (const json::Value key : log.result()["keys"]) data.custody.keys.push_back(key.string_or(""));
    const json::Value run = answer.result()["run"];
    for (const json::Value member : run) data.run[member.key()] = spelled_value(member);
    for (const json::Value label : run["labels"]) data.labels.emplace_back(label.key(), shown_value(label));
    const std::int64_t run_no = run["run_no"].as_int().value_or(0);
    if (run_no == 0)
      return Error(Errc::invalid_argument,
                   "_log is the log's own run and has no report; list its events with: muniment event list --run _log");
    data.chain.emplace(parse_uuid(data.log_id).value_or(Uuid{}), run_no);
    return success();
  }

  Estimates estimates() override { return estimates_of(client_, run_id_); }

  Status each_event(const Take& take) override { return each("event.list", "events", take, R"(,"unconfirmed":true)"); }
  Status each_claim(const Take& take) override { return each("claim.list", "claims", take); }
  Status each_evidence(const Take& take) override { return each("evidence.list", "evidence", take); }

  Status read_custody(ReportData& data) override {
    ReportCustody& custody = data.custody;
    const std::int64_t seq = data.chain->last_seq();
    if (seq < 0 && data.chain->broken()) {
      custody.unproven = "the chain is broken before its first event, so no proof can start from it";
      return success();
    }
    const auto answer = client_.call("audit.prove", fmt::format("{{\"seq\":{}{}}}", seq, log_no_));
    if (!answer) {
      custody.unproven = answer.error().message;
      return is_transient(answer.error().code) && answer.error().code == Errc::unavailable ? Status(answer.error())
                                                                                           : success();
    }
    const json::Value proof = answer->result();
    custody.size = proof["size"].as_int().value_or(-1);
    custody.root = proof["root"].string_or("");
    std::vector<Hash> hashes;
    for (const json::Value hash : proof["hashes"]) hashes.push_back(hash_from_hex(hash.string_or("")).value_or(Hash{}));
    const auto root = hash_from_hex(custody.root);
    if (!root || !events::proves_inclusion(data.chain->leaf_hash(), seq, custody.size, *root, hashes)) {
      custody.unproven = "the daemon's inclusion proof does not connect the last event to the checkpoint's root";
      return success();
    }
    return check_note(custody, proof["proof"].string_or(""), *root);
  }

  Result<std::string> pending() override {
    ASSIGN_OR_RETURN(const Message answer, client_.call("run.rehydrate", asked(",\"path\":\"/pending\"")));
    return std::string(answer.result()["state"].source());
  }

  // Reads the steps of the daemon's clock during the run: events of the log's own run, which only some users may read.
  Status read_clock_steps(ReportData& data) override {
    const std::string request = fmt::format(
        R"({{"run_id":"_log","unconfirmed":true,"types":["clock.stepped","log.started"],"from_seq":{},"limit":1000}})",
        std::max<std::int64_t>(data.first_seq, 0));
    const Status read =
        each_item(client_, "event.list", request, "events", [&](const json::Value& event) -> Result<bool> {
          if (event["seq"].as_int().value_or(0) > data.last_seq) return false;
          const json::Value body = event["body"];
          if (event["type"].string_or("") == "log.started")
            ++data.starts;
          else
            data.clock_steps.add({shown_value(event["seq"]), shown_value(body["before"]), shown_value(body["after"])},
                                 Mark::warning);
          return true;
        });
    if (!read) data.clock_steps_unknown = read.error().message;
    return success();
  }

 private:
  std::string asked(std::string_view more = {}) const {
    return fmt::format("{{\"run_id\":{}{}}}", json::quote(run_id_), more);
  }

  Status each(std::string_view method, std::string_view list, const Take& take, std::string_view more = {}) {
    const std::string request = asked(",\"limit\":1000" + std::string(more));
    return each_item(client_, method, request, list, [&](const json::Value& item) -> Result<bool> {
      take(item);
      return true;
    });
  }

  // Checks that the note names this log, size and root, and that a key which the log claims signed it.
  static Status check_note(ReportCustody& custody, const std::string& file, const Hash& root) {
    const std::size_t blank = file.find("\n\n");
    if (blank == std::string::npos) return success();  // no key
    custody.note = file.substr(blank + 2);
    custody.is_signed = true;
    std::vector<VerifierKey> keys;
    for (const std::string& key : custody.keys) {
      if (auto parsed = VerifierKey::parse(key)) keys.push_back(*parsed);
    }
    const auto note = Note::parse(custody.note);
    const auto checkpoint = note ? Checkpoint::parse(note->text) : Result<Checkpoint>(note.error());
    const auto signers = note ? signers_of(*note, keys) : Result<std::vector<Signed>>(note.error());
    if (!checkpoint || !signers || signers->empty() || checkpoint->origin != custody.origin_line ||
        checkpoint->size != custody.size || checkpoint->root != root) {
      custody.unproven = "the signed checkpoint belongs to a different log, or its signature does not verify";
      return success();
    }
    for (const Signed& one : *signers) custody.signed_by.push_back(one.key->text());
    return success();
  }

  Client& client_;
  const std::string run_id_;
  std::string log_no_;  // ",\"log_no\":N" for a run of a closed log
};

}  // namespace

std::unique_ptr<ReportSource> daemon_report_source(Client& client, const std::string& run_id) {
  return std::make_unique<DaemonReport>(client, run_id);
}

}  // namespace muniment::cli
