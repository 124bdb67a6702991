#include "verify/portable/proof.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/crypto/base64.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "verify/log/hashing.hpp"
#include "verify/log/run_facts.hpp"
#include "verify/signed/note_files.hpp"

namespace muniment::verify {
namespace {

constexpr std::string_view proof_first_line = "c2sp.org/tlog-proof@v1";
constexpr std::size_t hashes_max = 63;  // a tree of 2^63 leaves

Error not_a_proof(std::string_view why) { return {Errc::corrupt, fmt::format("not a proof: {}", why)}; }

// Returns the text after `name` and a space.
std::optional<std::string_view> value_of(std::optional<std::string_view> line, std::string_view name) {
  if (!line || !line->starts_with(name) || line->substr(name.size(), 1) != " ") return std::nullopt;
  return line->substr(name.size() + 1);
}

class ProofJudge {
 public:
  ProofJudge(ProofReport& report, Findings& findings) : report_(report), findings_(findings) {}

  void proof(const ProofFile& file, const Entry& entry, const std::vector<VerifierKey>& keys) {
    report_.leaf_hash = sha256({std::string_view("\0", 1), file.entry});
    report_.run_hash = sha256({"\x10", file.entry});
    report_.root = file.checkpoint.checkpoint.root;
    report_.origin = file.checkpoint.checkpoint.origin;
    report_.size = file.checkpoint.checkpoint.size;
    if (entry.seq != file.index)
      found(Check::proof, fmt::format("an entry with seq {}", file.index), fmt::format("seq {}", entry.seq));
    const auto root = root_of_proof(report_.leaf_hash, file.index, report_.size, file.hashes);
    if (root != report_.root) {
      found(Check::proof, "a proof that leads to the root " + to_hex(report_.root),
            root ? to_hex(*root)
                 : fmt::format("{} hashes do not lead from leaf {} of {} to a root", file.hashes.size(), file.index,
                               report_.size));
    }
    report_.signatures = judge_checkpoint(file.checkpoint, entry.log_id, keys, findings_);
  }

  // Errors: corrupt if the text is not a receipt.
  Status receipt(std::string_view text, const Entry& entry) {
    const auto document = json::parse(text);
    if (!document) return Error(Errc::corrupt, "the receipt is not valid JSON: " + document.error().message);
    json::Value held = document->root();
    if (held["event"].is(json::Kind::object)) held = held["event"];  // the form that event.get returns
    const std::size_t fields = compare_fields(held, entry);
    const json::Value body = held["body"];
    const auto salt = from_hex(text_of(held, "salt").value_or(""));
    if (body && body.kind() != json::Kind::null && salt && salt->size() == sizeof(Salt)) {
      // A body is either embedded as JSON or given as a string that holds its bytes.
      const std::string bytes = body.is(json::Kind::string) ? body.string_or("") : std::string(body.source());
      const Hash hash = sha256({*salt, bytes});
      report_.body_fits = view(hash) == entry.body_hash;
      if (!report_.body_fits)
        found(Check::receipt, "body_hash = " + to_hex(entry.body_hash), "sha256(salt, body) = " + to_hex(hash));
    } else if (fields == 0) {
      return Error(Errc::corrupt, "the receipt has neither a member of an entry nor a salt with a body");
    }
    report_.receipt_fits = findings_.count() == before_receipt_;
    return success();
  }
  void start_receipt() { before_receipt_ = findings_.count(); }

 private:
  std::size_t compare_fields(const json::Value& held, const Entry& entry) {
    const std::pair<std::string_view, std::string> wanted[] = {{"seq", fmt::to_string(entry.seq)},
                                                               {"run_seq", fmt::to_string(entry.run_seq)},
                                                               {"run_no", fmt::to_string(entry.run_no)},
                                                               {"run_id", entry.run_id},
                                                               {"type", entry.type},
                                                               {"actor", entry.actor},
                                                               {"recorded_at", format_time(entry.recorded_at)},
                                                               {"event_id", entry.event_id.text()},
                                                               {"body_hash", to_hex(entry.body_hash)},
                                                               {"run_hash", to_hex(report_.run_hash)},
                                                               {"leaf_hash", to_hex(report_.leaf_hash)}};
    std::size_t fields = 0;
    for (const auto& [name, value] : wanted) {
      const json::Value member = held[name];
      if (!member || member.kind() == json::Kind::null) continue;
      ++fields;
      const std::string said = member.is(json::Kind::string) ? member.string_or("") : std::string(member.source());
      if (said != value) found(Check::receipt, fmt::format("{} = {}", name, value), shown(name, said));
    }
    return fields;
  }

  void found(Check check, std::string expected, std::string actual) {
    findings_.add({check, -1, "", std::move(expected), std::move(actual)});
  }

  ProofReport& report_;
  Findings& findings_;
  std::size_t before_receipt_ = 0;
};

}  // namespace

Result<ProofFile> parse_proof(std::string_view text) {
  if (take_line(text) != proof_first_line)
    return not_a_proof(fmt::format("its first line is not {}", proof_first_line));
  ProofFile file;
  const auto extra = value_of(take_line(text), "extra");
  auto entry = from_base64(extra.value_or(""));
  if (!extra || !entry) return not_a_proof("there is no entry: a line `extra <base64>`");
  file.entry = *std::move(entry);
  const auto index = parse_decimal(value_of(take_line(text), "index").value_or(""));
  if (!index) return not_a_proof("there is no line `index <seq>`");
  file.index = *index;
  while (true) {
    const auto line = take_line(text);
    if (!line) return not_a_proof("it ends before its checkpoint");
    if (line->empty()) break;
    const auto hash = hash_from_base64(*line);
    if (!hash) return not_a_proof("a hash is not 32 bytes in base64");
    if (file.hashes.size() == hashes_max) return not_a_proof(fmt::format("over {} hashes", hashes_max));
    file.hashes.push_back(*hash);
  }
  ASSIGN_OR_RETURN(file.checkpoint, parse_checkpoint_file(text));
  return file;
}

ProofReport judge_proof(std::string_view proof, const std::vector<VerifierKey>& keys,
                        const std::optional<std::string>& receipt) {
  ProofReport report;
  Findings findings;
  const auto unreadable = [&report](const Error& error) {
    report.problem = error.message;
    return report;
  };
  const auto file = parse_proof(proof);
  if (!file) return unreadable(file.error());
  auto entry = decode_entry(file->entry);
  if (!entry) return unreadable(entry.error());
  ProofJudge judge(report, findings);
  judge.proof(*file, *entry, keys);
  judge.start_receipt();
  if (receipt) {
    if (const Status fits = judge.receipt(*receipt, *entry); !fits) return unreadable(fits.error());
  }
  report.entry = *std::move(entry);
  report.findings = findings.first();
  report.verdict = !report.findings.empty()               ? Verdict::tampered
                   : report.signatures.upto >= 0          ? Verdict::verified
                   : !report.signatures.wrong_key.empty() ? Verdict::wrong_key
                                                          : Verdict::is_unsigned;
  return report;
}

ProofReport verify_proof(const ProofOptions& options) {
  const Clock clock;
  const Time started = clock.now();
  const auto judged = [&]() -> Result<ProofReport> {
    ASSIGN_OR_RETURN(const std::string proof, read_named(options.proof, limits::proof_file_bytes_max));
    ASSIGN_OR_RETURN(const std::vector<VerifierKey> keys, read_keys(options.keys));
    std::optional<std::string> receipt;
    if (!options.receipt.empty()) {
      ASSIGN_OR_RETURN(receipt, read_named(options.receipt, limits::request_line_bytes_max));
    }
    return judge_proof(proof, keys, receipt);
  };
  auto outcome = judged();
  ProofReport report;
  if (outcome) {
    report = *std::move(outcome);
  } else {
    report.problem = outcome.error().message;
  }
  report.started = started;
  report.ended = clock.now();
  return report;
}

}  // namespace muniment::verify
