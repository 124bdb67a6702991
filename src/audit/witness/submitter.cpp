// Sends checkpoints to witnesses, folders and buckets, one thread each, and compares what they hold with the log.
#include "audit/witness/submitter.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "audit/proof.hpp"
#include "audit/witness/held_checkpoint.hpp"
#include "audit/witness/witness.hpp"
#include "base/files/file.hpp"
#include "base/http.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/process/thread.hpp"
#include "base/text.hpp"
#include "events/merkle_proof.hpp"

namespace muniment::audit {
namespace {

constexpr std::size_t waiting_max = 4'096;  // checkpoints; beyond it the oldest are dropped, and that is logged
constexpr std::chrono::milliseconds pause_least{250};
constexpr std::chrono::milliseconds pause_most{30'000};
// Interval between two questions to a keeper. One that needs long for the answer is asked less often.
constexpr std::chrono::milliseconds ask_every{60'000};
constexpr int ask_share = 100;  // the pause after a question is at least so many times the time that it took

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Result<Keeper> parse_keeper(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Error(Errc::invalid_argument, fmt::format("witnesses: \"{}\": {}", text, why));
  };
  Keeper keeper;
  const std::size_t space = text.find(' ');
  const std::string_view where = text.substr(0, space);
  if (where.starts_with("folder:/")) {
    keeper.where = where.substr(7);
  } else if (where.starts_with("s3://") && where.size() > 5) {
    keeper.kind = KeeperKind::bucket;
    keeper.where = where.substr(5);
  } else if (where.starts_with("unix:/") || where.starts_with("http://") || where.starts_with("https://")) {
    keeper.kind = KeeperKind::witness;
    keeper.unix_socket = where.starts_with("unix:");
    keeper.where = keeper.unix_socket ? where.substr(5) : where;
  } else {
    return bad("give folder:/PATH, s3://BUCKET/PREFIX, unix:/SOCKET VKEY or https://URL VKEY");
  }
  if (keeper.kind != KeeperKind::witness)
    return space == std::string_view::npos ? Result<Keeper>(keeper) : bad("only a witness has a key");
  auto key = VerifierKey::parse(space == std::string_view::npos ? std::string_view() : trimmed(text.substr(space)));
  if (!key) return bad("expected the witness's key, from its witness.pub, after the address: " + key.error().message);
  if (key->type != KeyType::cosignature) return bad("the key is not a witness's key");
  keeper.key = *std::move(key);
  return keeper;
}

const char* environment(const char* name, const char* fallback) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

// A functional test does not wait a minute.
std::chrono::milliseconds pause_before_question() {
  return FAILPOINT_FAILS("submitter.ask_soon") ? std::chrono::milliseconds(100) : ask_every;
}

// Returns whether the keeper has refused a checkpoint because of what it holds.
bool is_refusal(const Error& error) { return error.code == Errc::system_error || error.code == Errc::conflict; }

std::string note_name(std::int64_t size) { return fmt::format("{:020}.note", size); }

}  // namespace

std::string Keeper::shown() const {
  switch (kind) {
    case KeeperKind::folder: return "folder:" + where;
    case KeeperKind::bucket: return "s3://" + where;
    case KeeperKind::witness: return key->name;
  }
  return {};
}

Result<std::vector<Keeper>> parse_keepers(std::string_view text) {
  std::vector<Keeper> keepers;
  while (!(text = trimmed(text)).empty()) {
    const std::size_t comma = text.find(',');
    ASSIGN_OR_RETURN(Keeper keeper, parse_keeper(trimmed(text.substr(0, comma))));
    keepers.push_back(std::move(keeper));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return keepers;
}

struct Submitter::Line {
  Keeper keeper;
  std::deque<Published> waiting;  // guarded, like the next two
  KeeperStatus status;
  std::string cosigned;
  std::int64_t held_size = 0;  // size that the witness is known to hold
  std::thread thread;
  std::chrono::steady_clock::time_point ask_at{};  // time of the next question; used by its thread
};

Submitter::Submitter(std::vector<Keeper> keepers, const Publisher& publisher, Clock& clock,
                     std::function<void(const Error&)> on_other_tree)
    : publisher_(publisher), clock_(clock), on_other_tree_(std::move(on_other_tree)) {
  for (Keeper& keeper : keepers) {
    lines_.push_back(std::make_unique<Line>());
    lines_.back()->status.name = keeper.shown();
    lines_.back()->keeper = std::move(keeper);
  }
  for (const auto& line : lines_) line->thread = named_thread("submitter", [this, &line = *line] { serve(line); });
}

Submitter::~Submitter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (const auto& line : lines_) line->thread.join();
}

void Submitter::submit(const Published& published) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& line : lines_) {
      // A witness needs only the newest checkpoint, which extends the earlier ones.
      if (line->keeper.kind == KeeperKind::witness) line->waiting.clear();
      if (line->waiting.size() == waiting_max) {
        log_warning("a checkpoint was dropped",
                    {{"keeper", line->status.name}, {"size", std::to_string(line->waiting.front().checkpoint.size)}});
        line->waiting.pop_front();
      }
      line->waiting.push_back(published);
    }
  }
  changed_.notify_all();
}

std::vector<KeeperStatus> Submitter::status() const {
  const std::lock_guard lock(mutex_);
  std::vector<KeeperStatus> all;
  for (const auto& line : lines_) all.push_back(line->status);
  return all;
}

std::vector<std::string> Submitter::cosigned() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> notes;
  for (const auto& line : lines_) {
    if (!line->cosigned.empty()) notes.push_back(line->cosigned);
  }
  return notes;
}

// Runs until the daemon stops; then submits the waiting checkpoints once more, without a retry.
void Submitter::serve(Line& line) {
  std::chrono::milliseconds pause = pause_least;
  line.ask_at = std::chrono::steady_clock::now() + pause_before_question();
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, line.ask_at, [&] { return stopping_ || !line.waiting.empty(); });
    if (!stopping_ && std::chrono::steady_clock::now() >= line.ask_at) {
      lock.unlock();
      ask(line);
      continue;
    }
    if (line.waiting.empty() && stopping_) return;
    if (line.waiting.empty()) continue;
    const Published next = line.waiting.front();
    const bool last_try = stopping_;
    lock.unlock();
    const Status given = give(line, next);
    lock.lock();
    if (given) {
      if (!line.waiting.empty() && line.waiting.front().checkpoint.size == next.checkpoint.size)
        line.waiting.pop_front();
      line.status.size = next.checkpoint.size;
      line.status.at = clock_.now();
      line.status.problem.clear();
      pause = pause_least;
      continue;
    }
    if (line.status.problem != given.error().message) {
      log_warning("cannot send a checkpoint to its keeper",
                  {{"keeper", line.status.name}, {"error", given.error().message}});
    }
    line.status.problem = given.error().message;
    if (last_try) return;
    if (is_refusal(given.error())) {
      lock.unlock();
      ask(line);
      lock.lock();
    }
    changed_.wait_for(lock, pause, [&] { return stopping_; });
    pause = std::min(pause * 2, pause_most);
  }
}

// Compares the newest checkpoint that the keeper holds with the published tree. An unanswered question is repeated, and
// the next checkpoint shows that the keeper is unreachable.
void Submitter::ask(Line& line) const {
  const auto began = std::chrono::steady_clock::now();
  const auto held = held_checkpoint(line.keeper, publisher_.keys());
  const Published newest = publisher_.newest();
  line.ask_at = std::chrono::steady_clock::now() +
                std::max<std::chrono::steady_clock::duration>(pause_before_question(),
                                                              ask_share * (std::chrono::steady_clock::now() - began));
  if (!held || !*held || newest.note.empty()) return;  // without a note, this start has not published the tree yet
  const Checkpoint& theirs = **held;
  const Checkpoint& ours = newest.checkpoint;
  if (theirs.size > ours.size) {
    return on_other_tree_(
        Error(Errc::system_error,
              fmt::format("log_rolled_back: {} holds a checkpoint of {} events of this log, which has {}. Run "
                          "muniment-verify, and see docs/runbook.md#log_rolled_back",
                          line.keeper.shown(), theirs.size, ours.size)));
  }
  TreeReader tree(publisher_.tiles(), ours.size);
  const auto root = events::root_of(theirs.size, tree.reader());
  if (!root || *root == theirs.root) return;
  on_other_tree_(
      Error(Errc::system_error, fmt::format("log_rolled_back: {} holds another tree of the first {} events. Run "
                                            "muniment-verify, and see docs/runbook.md#log_rolled_back",
                                            line.keeper.shown(), theirs.size)));
}

Status Submitter::give(Line& line, const Published& published) {
  switch (line.keeper.kind) {
    case KeeperKind::folder: return put_file(line, published);
    case KeeperKind::bucket: return put_object(line, published);
    case KeeperKind::witness: return cosign(line, published);
  }
  return success();
}

// An existing name is never replaced: the folder may not even permit it.
Status Submitter::put_file(const Line& line, const Published& published) const {
  const std::string path = line.keeper.where + "/" + note_name(published.checkpoint.size);
  if (auto held = read_file(path, limits::note_bytes_max)) {
    const auto note = Note::parse(*held);
    if (note && note->text == published.checkpoint.text()) return success();
    return Error(
        Errc::conflict,
        path + " holds a different checkpoint of this size: this log has two histories. Run muniment-verify --witness");
  }
  return write_file_durably(path, published.note, 0444);
}

Status Submitter::put_object(const Line& line, const Published& published) const {
  const std::size_t slash = line.keeper.where.find('/');
  const std::string bucket = line.keeper.where.substr(0, slash);
  std::string prefix = slash == std::string::npos ? "" : line.keeper.where.substr(slash + 1);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  HttpRequest request;
  request.method = "PUT";
  request.region = environment("AWS_REGION", "us-east-1");
  const std::string endpoint = environment("AWS_ENDPOINT_URL", "");
  request.url = (endpoint.empty() ? fmt::format("https://{}.s3.{}.amazonaws.com/", bucket, request.region)
                                  : fmt::format("{}/{}/", endpoint, bucket)) +
                prefix + note_name(published.checkpoint.size);
  request.body = published.note;
  request.content_type = "text/plain; charset=utf-8";
  request.access_key = environment("AWS_ACCESS_KEY_ID", "");
  request.secret_key = environment("AWS_SECRET_ACCESS_KEY", "");
  if (request.access_key.empty())
    return Error(Errc::unavailable, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set for the daemon");
  ASSIGN_OR_RETURN(const HttpAnswer answer, send_http(request));
  if (answer.status / 100 == 2) return success();
  return Error(Errc::unavailable,
               fmt::format("{} answered {}: {}", request.url, answer.status, answer.body.substr(0, 200)));
}

Status Submitter::cosign(Line& line, const Published& published) {
  HttpRequest request;
  request.method = "POST";
  request.url = (line.keeper.unix_socket ? std::string("http://witness") : line.keeper.where) + "/add-checkpoint";
  if (line.keeper.unix_socket) request.unix_socket = line.keeper.where;
  request.content_type = "text/plain; charset=utf-8";
  for (int attempt = 0; attempt < 2; ++attempt) {
    ASSIGN_OR_RETURN(const auto proof,
                     prove_consistency(TreeToProve{publisher_.log_id(), publisher_.tiles(), publisher_.newest()},
                                       line.held_size, published.checkpoint.size));
    request.body = add_checkpoint_request(line.held_size, proof, published.note);
    ASSIGN_OR_RETURN(const HttpAnswer answer, send_http(request));
    if (answer.status == 409) {
      std::string_view body = answer.body;
      const auto held = parse_decimal(take_line(body).value_or(""));
      if (!held) return Error(Errc::unavailable, "the witness answered 409 without the size that it holds");
      line.held_size = *held;
      if (line.held_size > published.checkpoint.size) {
        return Error(
            Errc::system_error,
            fmt::format("the witness has seen {} events of this log, which has {}: see docs/runbook.md#log_rolled_back",
                        line.held_size, published.checkpoint.size));
      }
      continue;
    }
    if (answer.status != 200) {
      return Error(answer.status == 422 ? Errc::system_error : Errc::unavailable,
                   fmt::format("the witness answered {}: {}", answer.status, answer.body.substr(0, 200)));
    }
    ASSIGN_OR_RETURN(Note note, Note::parse(published.note));
    ASSIGN_OR_RETURN(const auto cosignatures, Note::parse_signatures(answer.body));
    note.signatures.insert(note.signatures.end(), cosignatures.begin(), cosignatures.end());
    ASSIGN_OR_RETURN(const auto signers, signers_of(note, {&*line.keeper.key, 1}));
    if (signers.empty()) return Error(Errc::corrupt, "the witness's answer has no cosignature by its key");
    line.held_size = published.checkpoint.size;
    const std::lock_guard lock(mutex_);
    line.cosigned = note.signed_text();
    return success();
  }
  return Error(Errc::conflict, "a second log of this name submits checkpoints at the same time");
}

}  // namespace muniment::audit
