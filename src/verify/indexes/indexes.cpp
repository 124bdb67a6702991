#include "verify/indexes/indexes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "verify/indexes/index_rows.hpp"
#include "verify/indexes/lexical_files.hpp"
#include "verify/indexes/shard_files.hpp"

namespace muniment::verify {
namespace {

// A running daemon may replace files during a read, which makes them look damaged. Real damage persists over several
// attempts.
constexpr int damaged_attempts_max = 3;
constexpr std::chrono::seconds attempts_for{60};
constexpr std::chrono::milliseconds between_attempts{100};
constexpr std::size_t findings_held_max = 1'000;
constexpr std::size_t model_bytes_max = limits::search_request_bytes_max * 2;
constexpr std::string_view mark = "mark:", lanes_mark = "mark:vectors";

// Result of one attempt. It is discarded if the daemon wrote in the meantime.
struct Attempt {
  std::vector<Finding> findings;
  std::vector<std::string> not_checked;
  IndexCounts counts;
  bool damaged = false;
};

// Checks one index or one vector space: compares the passages it holds with those it must and may hold at its position.
class IndexJudge {
 public:
  IndexJudge(std::string name, const IndexRows& rows, std::int64_t next_seq, std::optional<std::size_t> corpus,
             bool terms, Attempt& attempt)
      : name_(std::move(name)),
        rows_(rows),
        next_seq_(next_seq),
        corpus_(corpus),
        terms_(terms),
        attempt_(attempt),
        live_(static_cast<std::size_t>(rows.chunks_end)),
        closed_(static_cast<std::size_t>(rows.chunks_end)) {}

  void see(bool live, std::int64_t chunk, const IndexedFacts& facts) {
    const IndexedRevision* const revision = rows_.of(chunk);
    if (revision == nullptr || (corpus_ && revision->corpus != *corpus_)) {
      return found(-1, chunk, fmt::format("no passage {}", chunk),
                   revision == nullptr ? "a passage of no document" : "a passage of a different corpus");
    }
    (live ? live_ : closed_)[static_cast<std::size_t>(chunk)] = true;
    if (revision->removed_at < next_seq_) {
      return found(revision->seq, chunk, "absent: it was erased or revoked at " + number(revision->removed_at),
                   "there");
    }
    if (live && revision->valid_to < next_seq_) {
      return found(revision->seq, chunk, "not current: it was ended at " + number(revision->valid_to), "current");
    }
    compare(*revision, live, chunk, facts);
  }

  // If `complete` is set, every required passage must be present.
  void finish(bool complete) {
    if (!complete) return;
    for (const IndexedRevision& revision : rows_.revisions) {
      if (revision.seq >= next_seq_ || revision.removed_at != never || (corpus_ && revision.corpus != *corpus_))
        continue;
      for (std::int64_t chunk = revision.first_chunk; chunk < revision.first_chunk + revision.chunks; ++chunk) {
        const auto place = static_cast<std::size_t>(chunk);
        const bool there = revision.valid_to < next_seq_ ? closed_[place]
                           : revision.valid_to == never  ? live_[place]
                                                         : live_[place] || closed_[place];
        if (!there) found(revision.seq, chunk, revision.valid_to < next_seq_ ? "in the history" : "present", "missing");
      }
    }
  }

 private:
  static std::string number(std::int64_t seq) { return std::to_string(seq); }

  void compare(const IndexedRevision& revision, bool live, std::int64_t chunk, const IndexedFacts& facts) {
    const auto differs = [&](std::string_view what, std::int64_t wanted, std::int64_t held) {
      if (wanted != held)
        found(revision.seq, chunk, fmt::format("{} = {}", what, wanted), fmt::format("{} = {}", what, held));
    };
    differs("valid_from", revision.seq, facts.valid_from);
    differs("time", revision.time_us, facts.time_us);
    if (live != (facts.valid_to == never) || (!live && revision.valid_to == never)) {
      found(revision.seq, chunk, live ? "current" : "current: no event ended it",
            fmt::format("ended at {}", facts.valid_to));
    } else if (!live) {
      differs("valid_to", revision.valid_to, facts.valid_to);
    }
    if ((terms_ ? revision.terms : revision.labels) != facts.labels) {
      found(revision.seq, chunk, "the labels of its document", "other labels: filters include or exclude it wrongly");
    }
  }

  void found(std::int64_t seq, std::int64_t chunk, std::string expected, std::string actual) {
    const IndexedRevision* const revision = rows_.of(chunk);
    const std::string place =
        revision == nullptr
            ? fmt::format("{}, passage {}", name_, chunk)
            : fmt::format("{}, passage {} (#p{} of the document at {}, corpus {})", name_, chunk,
                          chunk - revision->first_chunk + 1, revision->seq, rows_.corpora[revision->corpus]);
    attempt_.findings.push_back(
        {Check::search_index, seq, std::string(log_run_id), place + ": " + std::move(expected), std::move(actual)});
    if (attempt_.findings.size() > findings_held_max) attempt_.findings.pop_back();
  }

  const std::string name_;
  const IndexRows& rows_;
  const std::int64_t next_seq_;
  const std::optional<std::size_t> corpus_;
  const bool terms_;
  Attempt& attempt_;
  std::vector<bool> live_, closed_;  // by passage
};

// Returns the number of revisions that began, ended or were removed at or after `next_seq`.
std::int64_t behind(const IndexRows& rows, std::int64_t next_seq) {
  const auto since = [&](std::int64_t seq) { return seq >= next_seq && seq != never; };
  return std::ranges::count_if(rows.revisions, [&](const IndexedRevision& one) {
    return since(one.seq) || since(one.valid_to) || since(one.removed_at);
  });
}

class Indexes {
 public:
  Indexes(const IndexWork& work, Attempt& attempt) : work_(work), attempt_(attempt) {}

  // Opens the indexes before it reads the rows, so that the rows cover everything that the indexes hold.
  Status run() {
    auto lexical = LexicalFiles::open(work_.folder + "/lexical");
    auto shard = ShardFiles::open(work_.folder + "/vector");
    ASSIGN_OR_RETURN(Connection now, work_.snapshot.outside());
    ASSIGN_OR_RETURN(rows_, read_index_rows(now, work_.log.log_no));
    if (rows_.next_seq < 0) return success();  // a database older than the document tables
    const Status has_lexical = lexical ? success() : Status(lexical.error()),
                 has_shard = shard ? success() : Status(shard.error());
    if (opened(has_lexical, "lexical index")) RETURN_IF_ERROR(judged(check_lexical(*lexical)));
    if (opened(has_shard, "vector shard")) RETURN_IF_ERROR(check_shard(*shard));
    for (const Status& opening : {has_lexical, has_shard}) {
      if (!opening && opening.error().code != Errc::not_found) RETURN_IF_ERROR(judged(opening));
    }
    return success();
  }

 private:
  // Returns false if the index is absent, which it reports, or could not be opened.
  bool opened(const Status& opening, const std::string& name) {
    if (opening) return true;
    if (opening.error().code != Errc::not_found) return false;
    if (!rows_.revisions.empty())
      attempt_.not_checked.push_back(
          fmt::format("the {} (there is none in {}: the daemon creates it at its next start)", name, work_.folder));
    return false;
  }

  // A file with invalid content is a finding; a file that is temporarily unreadable is not.
  Status judged(const Status& read) {
    if (read || read.error().code != Errc::corrupt) return read;
    attempt_.findings.push_back({Check::search_index, -1, "", "a readable index", read.error().message});
    attempt_.damaged = true;
    return success();
  }

  // Returns true if the rows cover the index up to its position.
  bool comparable(std::int64_t next_seq, const std::string& name) {
    if (next_seq > rows_.next_seq) {
      attempt_.not_checked.push_back(
          fmt::format("the {}: it is at {}, ahead of the document tables at {}", name, next_seq, rows_.next_seq));
      return false;
    }
    if (const std::int64_t revisions = behind(rows_, next_seq); revisions > 0) {
      attempt_.not_checked.push_back(
          fmt::format("{} documents that the {}, which is at {}, has not reached", revisions, name, next_seq));
    }
    return true;
  }

  Status check_lexical(const LexicalFiles& files) {
    if (!comparable(files.next_seq(), "lexical index")) return success();
    if (files.erasing())
      attempt_.not_checked.push_back(
          "free pages of the lexical index, which may still hold erased words: the next commit rewrites it");
    IndexJudge judge("lexical index", rows_, files.next_seq(), std::nullopt, true, attempt_);
    for (const bool live : {true, false}) {
      std::int64_t& count = live ? attempt_.counts.lexical : attempt_.counts.lexical_history;
      RETURN_IF_ERROR(files.visit(live, [&](std::int64_t chunk, const IndexedFacts& facts) {
        ++count;
        judge.see(live, chunk, facts);
      }));
    }
    judge.finish(true);
    return success();
  }

  Status check_shard(const ShardFiles& files) {
    std::int64_t lanes = 0;
    for (const ShardSpace& space : files.spaces()) {
      if (space.name == lanes_mark) lanes = space.next_seq;
    }
    if (!comparable(lanes, "vector shard")) return success();
    if (files.erasing())
      attempt_.not_checked.push_back(
          "files of the vector shard, which may still hold erased vectors: the next start rewrites them");
    std::vector<bool> has_hashes(rows_.corpora.size());
    for (const ShardSpace& space : files.spaces()) {
      if (space.name.starts_with(mark)) continue;
      RETURN_IF_ERROR(judged(check_space(files, space, lanes)));
      const std::size_t corpus = corpus_of(space);
      if (corpus < has_hashes.size() && space.name.starts_with("hash/")) has_hashes[corpus] = true;
    }
    for (std::size_t corpus = 0; corpus < has_hashes.size(); ++corpus) {
      // A corpus without a space has no passages in the index.
      if (!has_hashes[corpus])
        IndexJudge("vector space hash@" + rows_.corpora[corpus], rows_, lanes, corpus, false, attempt_).finish(true);
    }
    return success();
  }

  std::size_t corpus_of(const ShardSpace& space) const {
    const std::string corpus = space.name.substr(std::min(space.name.size(), space.name.find('@') + 1));
    return static_cast<std::size_t>(std::ranges::find(rows_.corpora, corpus) - rows_.corpora.begin());
  }

  Status check_space(const ShardFiles& files, const ShardSpace& space, std::int64_t lanes) {
    const auto position = position_of(files, space, lanes);
    // Ended passages are removed from a model's space together with all others, and from the space of a slow embedder
    // slightly later.
    const std::int64_t at = position ? *position : space.name.starts_with("lsa/") ? lanes : 0;
    IndexJudge judge("vector space " + space.name, rows_, at, corpus_of(space), false, attempt_);
    ++attempt_.counts.spaces;
    RETURN_IF_ERROR(files.visit(space, [&](bool live, std::int64_t chunk, const IndexedFacts& facts) {
      ++(live ? attempt_.counts.vectors : attempt_.counts.vectors_history);
      judge.see(live, chunk, facts);
    }));
    judge.finish(position.has_value());
    if (!position)
      attempt_.not_checked.push_back(fmt::format("whether {} has all passages: it is being filled", space.name));
    return success();
  }

  // Returns the position up to which a space must be complete. The space of a slow embedder has its own position; the
  // space of a model that is still being filled has none.
  std::optional<std::int64_t> position_of(const ShardFiles& files, const ShardSpace& space, std::int64_t lanes) const {
    const std::string identity = space.name.substr(0, space.name.find('@'));
    for (const ShardSpace& other : files.spaces()) {
      if (other.name == std::string(mark) + identity) return other.next_seq;
    }
    if (identity.starts_with("hash/") ||
        is_current_model(identity, space.name.substr(std::min(space.name.size(), identity.size() + 1)))) {
      return std::max(lanes, space.next_seq);
    }
    return std::nullopt;
  }

  // An identity ends with 16 digits of the model's hash. The active model's file is stored beside the indexes.
  bool is_current_model(const std::string& identity, const std::string& corpus) const {
    const auto text =
        read_file(work_.folder + "/models/" + to_hex(sha256(corpus)).substr(0, 32) + ".model", model_bytes_max);
    if (!text) return false;
    const std::size_t hash_end = text->find('\n'),
                      size_end = hash_end == std::string::npos ? hash_end : text->find('\n', hash_end + 1);
    if (size_end == std::string::npos || text->size() < size_end + 1 + corpus.size()) return false;
    return identity.ends_with(
        "/" + to_hex(sha256(std::string_view(*text).substr(size_end + 1 + corpus.size()))).substr(0, 16));
  }

  const IndexWork& work_;
  Attempt& attempt_;
  IndexRows rows_;
};

}  // namespace

Status check_indexes(const IndexWork& work, IndexCounts& counts) {
  struct stat about {};
  if (::stat(work.folder.c_str(), &about) != 0 && errno != ENOENT) return file_error("reading", work.folder, errno);
  const auto end = std::chrono::steady_clock::now() + attempts_for;
  for (int number = 1;; ++number) {
    Attempt attempt;
    const Status done = Indexes(work, attempt).run();
    const bool again = done ? attempt.damaged && number < damaged_attempts_max
                            : done.error().code == Errc::unavailable && std::chrono::steady_clock::now() < end;
    if (again) {
      std::this_thread::sleep_for(between_attempts);
      continue;
    }
    counts = attempt.counts;
    for (Finding& finding : attempt.findings) work.findings.add(std::move(finding));
    work.not_checked.insert(work.not_checked.end(), attempt.not_checked.begin(), attempt.not_checked.end());
    return done;
  }
}

}  // namespace muniment::verify
