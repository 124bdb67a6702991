#include "store/read/document_lives.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <variant>

#include "base/crypto/hmac.hpp"

namespace muniment::store {
namespace {

constexpr std::chrono::milliseconds followed_within{1'000};
constexpr std::chrono::seconds loaded_within{30};

std::optional<std::string> ended_by_of(char letter) {
  switch (letter) {
    case 'i': return "revised";
    case 't': return "retracted";
    case 'o': return "revoked";
    case 's': return "erased";
    default: return std::nullopt;
  }
}

char letter(std::string_view ended_by) {
  return ended_by == "retracted" ? 't' : ended_by.size() > 3 ? ended_by[3] : '\0';
}

void put(std::string& out, std::int64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<std::uint64_t>(number) >> shift & 0xFF);
}

std::uint64_t word_of(const Hash& hash, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, hash.data() + at * sizeof word, sizeof word);
  return word;
}

std::int64_t current_passages(const DocumentLife& life) { return life.valid_to < 0 ? life.chunks : 0; }

void end(DocumentLife& life, std::int64_t seq, char how) {
  if (life.valid_to >= 0) return;
  life.valid_to = seq;
  life.ended_by = how;
}

}  // namespace

NameHash DocumentLives::name_of(std::string_view corpus, std::string_view document) const {
  const Hash hash = hmac_sha256(key_, {"name", corpus, std::string_view("\0", 1), document});
  return {word_of(hash, 0), word_of(hash, 1)};
}

// Adds a keyed hash of the life to a sum, which does not depend on the order.
void DocumentLives::sum(std::array<std::uint64_t, 4>& digest, const DocumentLife& life, bool plus) const {
  std::string text;
  for (const std::int64_t number :
       {life.seq, life.first_chunk, life.chunks, life.valid_to, life.removed_at, std::int64_t{life.ended_by},
        static_cast<std::int64_t>(life.name[0]), static_cast<std::int64_t>(life.name[1])})
    put(text, number);
  const Hash hash = hmac_sha256(key_, {"life", text});
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] += plus ? word_of(hash, i) : 0 - word_of(hash, i);
}

const DocumentLife* DocumentLives::find(std::int64_t seq) const {
  const auto found = std::ranges::lower_bound(lives_, seq, {}, &DocumentLife::seq);
  return found != lives_.end() && found->seq == seq ? &*found : nullptr;
}

std::int64_t DocumentLives::newest_of(const NameHash& name) const {
  const auto found = newest_.find(name);
  return found == newest_.end() ? -1 : found->second;
}

void DocumentLives::unload() {
  const std::unique_lock lock(mutex_);
  next_seq_ = -1;
}

std::unique_ptr<DocumentLives> DocumentLives::fresh() const { return std::make_unique<DocumentLives>(key_); }

void DocumentLives::replace(DocumentLives& loaded) {
  const std::scoped_lock lock(mutex_, loaded.mutex_);
  lives_.swap(loaded.lives_);
  newest_.swap(loaded.newest_);
  corpora_.swap(loaded.corpora_);
  corpus_places_.swap(loaded.corpus_places_);
  digest_ = loaded.digest_;
  passages_ = loaded.passages_;
}

void DocumentLives::add(const DocumentRow& row) {
  CorpusEffects effects;
  effects.first_chunks[row.seq] = row.first_chunk;
  Revised revised;
  revised.row.seq = row.seq;
  revised.row.corpus = row.corpus;
  revised.row.document = row.document;
  revised.chunks.resize(static_cast<std::size_t>(row.chunks));
  Update update = derive({revised}, effects);
  DocumentLife& life = update.lives.at(row.seq);
  sum(update.digest, life, false);
  life.valid_to = row.valid_to.value_or(-1);
  life.removed_at = row.removed_at.value_or(-1);
  life.ended_by = letter(row.ended_by.value_or(""));
  sum(update.digest, life, true);
  // The table holds the ends; a later revision does not change them.
  if (life.previous >= 0) {
    DocumentLife& before = update.lives.at(life.previous);
    sum(update.digest, before, false);
    before = *find(life.previous);
    sum(update.digest, before, true);
  }
  take(std::move(update), -1);
}

void DocumentLives::begin(std::int64_t next_seq) {
  const std::unique_lock lock(mutex_);
  next_seq_ = next_seq;
  changed_.notify_all();
}

void DocumentLives::refuse(const Error& error) {
  const std::unique_lock lock(mutex_);
  refused_ = error;
  changed_.notify_all();
}

DocumentLives::Update DocumentLives::derive(const std::vector<CorpusChange>& changes,
                                            const CorpusEffects& effects) const {
  Update update;
  update.digest = digest_;
  const auto life_at = [&](std::int64_t seq) -> DocumentLife* {
    if (const auto held = update.lives.find(seq); held != update.lives.end()) return &held->second;
    const DocumentLife* const known = find(seq);
    return known == nullptr ? nullptr : &update.lives.emplace(seq, *known).first->second;
  };
  const auto change = [&](std::int64_t seq, const auto& how) {
    DocumentLife* const life = seq < 0 ? nullptr : life_at(seq);
    if (life == nullptr) return;
    sum(update.digest, *life, false);
    how(*life);
    sum(update.digest, *life, true);
  };
  const auto newest = [&](const NameHash& name) {
    const auto held = update.newest.find(name);
    return held != update.newest.end() ? held->second : newest_of(name);
  };
  const auto corpus_place = [&](const std::string& corpus) {
    if (const auto known = corpus_places_.find(corpus); known != corpus_places_.end()) return known->second;
    const auto held = std::ranges::find(update.corpora, corpus);
    const auto place = corpora_.size() + static_cast<std::size_t>(held - update.corpora.begin());
    if (held == update.corpora.end()) update.corpora.push_back(corpus);
    return static_cast<std::uint32_t>(place);
  };
  for (const CorpusChange& one : changes) {
    if (const auto* revised = std::get_if<Revised>(&one)) {
      const auto chunk = effects.first_chunks.find(revised->row.seq);
      if (chunk == effects.first_chunks.end()) continue;  // it was followed before
      DocumentLife life;
      life.seq = revised->row.seq;
      life.first_chunk = chunk->second;
      life.chunks = std::ssize(revised->chunks);
      life.corpus = corpus_place(revised->row.corpus);
      life.name = name_of(revised->row.corpus, revised->row.document);
      if (!revised->row.of_run()) {
        life.previous = newest(life.name);
        change(life.previous, [&](DocumentLife& before) { end(before, life.seq, letter("revised")); });
        update.newest[life.name] = life.seq;
      }
      sum(update.digest, life, true);
      update.lives[life.seq] = life;
    } else if (const auto* retracted = std::get_if<Retracted>(&one)) {
      change(newest(name_of(retracted->corpus, retracted->document)),
             [&](DocumentLife& life) { end(life, retracted->seq, letter("retracted")); });
    } else if (const auto* revoked = std::get_if<Revoked>(&one)) {
      const auto ended = effects.revoked.find(revoked->seq);
      if (ended == effects.revoked.end()) continue;
      for (const std::int64_t seq : ended->second) {
        change(seq, [&](DocumentLife& life) {
          life.removed_at = revoked->seq;
          end(life, revoked->seq, letter("revoked"));
        });
      }
    } else if (const auto* gone = std::get_if<Erased>(&one)) {
      change(gone->erased_seq, [&](DocumentLife& life) {
        life.removed_at = gone->seq;
        end(life, gone->seq, letter("erased"));
        life.ended_by = letter("erased");
      });
    }
  }
  return update;
}

void DocumentLives::take(Update update, std::int64_t next_seq) {
  const std::unique_lock lock(mutex_);
  for (std::string& name : update.corpora) {
    corpus_places_.emplace(name, static_cast<std::uint32_t>(corpora_.size()));
    corpora_.push_back({std::move(name), -1, 0});
  }
  for (const auto& [seq, life] : update.lives) {
    Corpus& corpus = corpora_[life.corpus];
    const auto place = std::ranges::lower_bound(lives_, seq, {}, &DocumentLife::seq);
    const bool is_new = place == lives_.end() || place->seq != seq;
    if (!is_new) corpus.current -= place->valid_to < 0;
    if (!is_new) passages_ -= current_passages(*place);
    corpus.current += life.valid_to < 0;
    passages_ += current_passages(life);
    if (corpus.first_seq < 0 || seq < corpus.first_seq) corpus.first_seq = seq;
    if (is_new)
      lives_.insert(place, life);
    else
      *place = life;
  }
  for (const auto& [name, seq] : update.newest) newest_[name] = seq;
  digest_ = update.digest;
  if (next_seq >= 0) next_seq_ = next_seq;
  changed_.notify_all();
}

std::string DocumentLives::digest(const Update* after) const {
  std::string text;
  for (const std::uint64_t word : after != nullptr ? after->digest : digest_)
    put(text, static_cast<std::int64_t>(word));
  return text;
}

Status DocumentLives::wait_for(std::int64_t seq) const {
  std::shared_lock lock(mutex_);
  const auto ready = [&] { return refused_ || next_seq_ >= seq; };
  if (next_seq_ < 0 && !changed_.wait_for(lock, loaded_within, [&] { return refused_ || next_seq_ >= 0; }))
    return Error(Errc::unavailable, "the documents have not been compared with the log yet. Retry.");
  if (!ready()) changed_.wait_for(lock, followed_within, ready);
  return refused_ ? Status(*refused_) : success();
}

Status DocumentLives::refused() const {
  const std::shared_lock lock(mutex_);
  return refused_ ? Status(*refused_) : success();
}

std::int64_t DocumentLives::next_seq() const {
  const std::shared_lock lock(mutex_);
  return next_seq_;
}

std::optional<DocumentLife> DocumentLives::of(std::int64_t seq) const {
  const std::shared_lock lock(mutex_);
  const DocumentLife* const life = find(seq);
  return life == nullptr ? std::nullopt : std::optional(*life);
}

std::optional<bool> DocumentLives::put_life(DocumentRow& row) const {
  const std::optional<DocumentLife> life = of(row.seq);
  if (!life) return std::nullopt;
  const auto ends = [](auto& of) {
    return std::tie(of.valid_to, of.removed_at, of.ended_by, of.first_chunk, of.chunks);
  };
  DocumentRow recorded;
  if (life->valid_to >= 0) recorded.valid_to = life->valid_to;
  if (life->removed_at >= 0) recorded.removed_at = life->removed_at;
  recorded.ended_by = ended_by_of(life->ended_by);
  recorded.first_chunk = life->first_chunk;
  recorded.chunks = life->chunks;
  if (ends(row) == ends(recorded)) return false;
  ends(row) = ends(recorded);
  return true;
}

std::int64_t DocumentLives::current(std::string_view corpus, std::string_view document,
                                    std::optional<std::int64_t> as_of) const {
  const std::shared_lock lock(mutex_);
  for (std::int64_t seq = newest_of(name_of(corpus, document)); seq >= 0;) {
    const DocumentLife& life = *find(seq);
    if (!as_of) return life.valid_to < 0 ? seq : -1;
    if (seq <= *as_of) return life.valid_to < 0 || life.valid_to > *as_of ? seq : -1;
    seq = life.previous;
  }
  return -1;
}

std::vector<std::int64_t> DocumentLives::revisions(std::string_view corpus, std::string_view document,
                                                   std::optional<std::int64_t> before, std::size_t limit) const {
  const std::shared_lock lock(mutex_);
  std::vector<std::int64_t> seqs;
  for (std::int64_t seq = newest_of(name_of(corpus, document)); seq >= 0 && seqs.size() < limit;
       seq = find(seq)->previous) {
    if (!before || seq < *before) seqs.push_back(seq);
  }
  return seqs;
}

std::int64_t DocumentLives::current_count(std::string_view corpus) const {
  const std::shared_lock lock(mutex_);
  const auto place = corpus_places_.find(corpus);
  return place == corpus_places_.end() ? 0 : corpora_[place->second].current;
}

std::int64_t DocumentLives::first_seq(std::string_view corpus) const {
  const std::shared_lock lock(mutex_);
  const auto place = corpus_places_.find(corpus);
  return place == corpus_places_.end() ? -1 : corpora_[place->second].first_seq;
}

std::int64_t DocumentLives::passages() const {
  const std::shared_lock lock(mutex_);
  return passages_;
}

std::map<std::string, std::int64_t> DocumentLives::corpora() const {
  const std::shared_lock lock(mutex_);
  std::map<std::string, std::int64_t> out;
  for (const Corpus& corpus : corpora_) {
    if (corpus.name != run_corpus) out.emplace(corpus.name, corpus.first_seq);
  }
  return out;
}

}  // namespace muniment::store
