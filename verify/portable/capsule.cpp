#include "verify/portable/capsule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/crypto/crc32c.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "verify/report_parts.hpp"
#include "verify/signed/checkpoint_file.hpp"
#include "verify/signed/note_files.hpp"

namespace muniment::verify {
namespace {

constexpr std::string_view file_magic{"\x89MUNCAP\n", 8}, frame_magic{"MUFR", 4}, commit_magic{"MUCOMMIT", 8};
constexpr std::int64_t file_header_bytes = 128, frame_header_bytes = 112, unit = 8;
constexpr std::size_t frame_crc_at = 104, marks_at = 64, mark_bytes = 32, commit_fixed_bytes = 104,
                      segment_row_bytes = 72;
constexpr std::uint32_t document_type = 1, signature_type = 7, segment_type = 16, commit_type = 17;
constexpr std::int64_t piece_bytes = 1 << 20;
constexpr std::int64_t still_valid = INT64_MAX;
constexpr std::uint32_t retraction_type = 2, frames_kind = 1, documents_kind = 2, last_kind = 7;
constexpr std::int64_t whole_bytes_max = 4 * limits::document_bytes_max;  // of a document with its extracted text

template <typename Number>
Number little_endian(std::string_view bytes, std::size_t at) {
  Number value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

constexpr std::int64_t padded(std::int64_t bytes) { return (bytes + unit - 1) / unit * unit; }

struct CapsuleFrame {
  std::uint32_t type = 0;
  std::int64_t number = 0, time_us = 0, begin = 0, end = 0, about_bytes = 0, body_bytes = 0;
  std::string payload, chained, chain;
  std::uint32_t body_crc = 0;
  bool zeros = true;  // between its parts

  bool is_data() const { return type < segment_type; }
  std::int64_t about_at() const { return begin + frame_header_bytes; }
  std::int64_t body_at() const { return about_at() + padded(about_bytes); }
};

class CapsuleJudge {
 public:
  CapsuleJudge(const Fd& file, std::int64_t size, const std::vector<VerifierKey>& keys, CapsuleReport& report)
      : file_(file), size_(size), keys_(keys), report_(report) {}

  // Errors: invalid_argument if it is no capsule; those of reading.
  Status judge() {
    RETURN_IF_ERROR(read_header());
    if (marked_end_ == 0) RETURN_IF_ERROR(find_last_commit());
    std::int64_t at = file_header_bytes, state_end = 0;
    while (at < size_ && findings_.count() == 0) {
      ASSIGN_OR_RETURN(const auto frame, frame_at(at));
      if (!frame) break;
      RETURN_IF_ERROR(take(*frame));
      at = frame->end;
      if (frame->type == commit_type) {
        state_ = seen_;
        state_end = at;
        newest_ = *frame;
      }
    }
    // The bytes after the newest commit are the torn end of an interrupted writer, unless a mark names a later commit.
    if (findings_.count() == 0 && (state_end == 0 || state_end < marked_end_))
      found(fmt::format("intact frames up to the newest commit, which ends at byte {}", marked_end_),
            fmt::format("the frame at byte {} is {}", at, at < size_ ? "damaged" : "missing"));
    for (const Place& mark : marks_) {
      if (findings_.count() == 0 && std::ranges::find(commits_, mark) == commits_.end())
        found("a mark that names a commit to which the frames lead",
              fmt::format("commit {} at byte {}", mark.number, mark.begin));
    }
    report_.torn_bytes = findings_.count() == 0 ? size_ - state_end : 0;
    if (findings_.count() == 0) RETURN_IF_ERROR(check_places());
    conclude();
    return success();
  }

 private:
  // A commit, as a mark names it.
  struct Place {
    std::uint64_t number = 0, begin = 0, end = 0;
    bool operator==(const Place&) const = default;
  };

  // Row of the segment `frames` for a data frame.
  struct FrameRow {
    std::int64_t offset = 0, time_us = 0, valid_to = still_valid;
    std::uint32_t first_chunk = 0, chunks = 0, type = 0, retracted = 0;
  };

  // Counted up to the newest complete commit.
  struct Counts {
    std::int64_t frames = 0, documents = 0, unsigned_frames = 0;
    Hash chain{};
    Signatures signatures;
  };

  void found(std::string expected, std::string actual, Check check = Check::capsule) {
    findings_.add({check, number_, "", std::move(expected), std::move(actual)});
  }

  Status read_header() {
    ASSIGN_OR_RETURN(const std::string bytes, read_at(file_, 0, file_header_bytes));
    const std::string_view header = bytes;
    if (std::ssize(header) < file_header_bytes || !header.starts_with(file_magic))
      return Error(Errc::invalid_argument, "this is no capsule");
    if (const auto version = little_endian<std::uint32_t>(header, 8); version != 1)
      return Error(Errc::invalid_argument, fmt::format("the capsule has format {}, this program reads 1", version));
    if (crc32c(header.substr(0, 60)) != little_endian<std::uint32_t>(header, 60))
      return Error(Errc::invalid_argument, "the header of the capsule is damaged");
    report_.id = to_hex(header.substr(16, 16));
    seen_.chain = sha256({header.substr(0, marks_at), std::string(2 * mark_bytes, '\0')});
    for (const std::size_t mark : {marks_at, marks_at + mark_bytes}) {
      const auto begin = little_endian<std::uint64_t>(header, mark + 8),
                 end = little_endian<std::uint64_t>(header, mark + 16);
      if (crc32c(header.substr(mark, 24)) != little_endian<std::uint32_t>(header, mark + 24) || end == 0 ||
          begin < file_header_bytes || begin >= end)
        continue;
      marks_.push_back({little_endian<std::uint64_t>(header, mark), begin, end});
      marked_end_ = std::max(marked_end_, static_cast<std::int64_t>(std::min<std::uint64_t>(end, INT64_MAX)));
    }
    return success();
  }

  // Without a mark, the newest commit is the last one to which the frames lead.
  Status find_last_commit() {
    for (std::int64_t at = file_header_bytes; at < size_;) {
      ASSIGN_OR_RETURN(const auto frame, header_at(at));
      if (!frame) break;
      at = frame->end;
      if (frame->type == commit_type) marked_end_ = at;
    }
    return success();
  }

  // Returns nullopt if no frame is there that fits into the file.
  Result<std::optional<CapsuleFrame>> header_at(std::int64_t at) {
    const std::optional<CapsuleFrame> none;
    ASSIGN_OR_RETURN(const std::string header, read_at(file_, at, frame_header_bytes));
    if (std::ssize(header) < frame_header_bytes || !header.starts_with(frame_magic)) return none;
    if (crc32c(std::string_view(header).substr(0, frame_crc_at)) !=
            little_endian<std::uint32_t>(header, frame_crc_at) ||
        little_endian<std::uint32_t>(header, frame_crc_at + 4) != 0)
      return none;
    CapsuleFrame frame;
    frame.type = little_endian<std::uint32_t>(header, 4);
    frame.number = little_endian<std::int64_t>(header, 8);
    frame.time_us = little_endian<std::int64_t>(header, 16);
    frame.about_bytes = little_endian<std::int64_t>(header, 24);
    frame.body_bytes = little_endian<std::int64_t>(header, 32);
    frame.payload = header.substr(40, 32);
    frame.chained = header.substr(0, 72);
    frame.chain = header.substr(72, 32);
    frame.begin = at;
    if (frame.type == 0 || (frame.type > signature_type && frame.type != segment_type && frame.type != commit_type))
      return none;
    if (frame.about_bytes < 0 || frame.about_bytes > size_ || frame.body_bytes < 0 || frame.body_bytes > size_)
      return none;
    frame.end = frame.body_at() + padded(frame.body_bytes);
    return frame.end <= size_ ? std::optional(std::move(frame)) : none;
  }

  // Returns nullopt if no whole frame is there: damage, or the torn end of an interrupted writer.
  Result<std::optional<CapsuleFrame>> frame_at(std::int64_t at) {
    ASSIGN_OR_RETURN(auto frame, header_at(at));
    if (!frame) return frame;
    ASSIGN_OR_RETURN(const bool intact, has_payload(*frame));
    if (!intact) frame.reset();
    return frame;
  }

  // Compares the description and the body with their hash; notes whether only zeros are between them.
  Result<bool> has_payload(CapsuleFrame& frame) {
    Sha256 hash;
    for (const auto& [begin, bytes] :
         {std::pair{frame.about_at(), frame.about_bytes}, {frame.body_at(), frame.body_bytes}}) {
      for (std::int64_t at = 0; at < bytes; at += piece_bytes) {
        const auto piece = static_cast<std::size_t>(std::min(piece_bytes, bytes - at));
        ASSIGN_OR_RETURN(const std::string part, read_at(file_, begin + at, piece));
        if (part.size() != piece) return false;
        hash.update(part);
        if (begin == frame.body_at()) frame.body_crc = crc32c(part, frame.body_crc);
      }
      ASSIGN_OR_RETURN(const std::string zeros,
                       read_at(file_, begin + bytes, static_cast<std::size_t>(padded(bytes) - bytes)));
      if (zeros.find_first_not_of('\0') != std::string::npos) frame.zeros = false;
    }
    return view(hash.finish()) == frame.payload;
  }

  Status take(const CapsuleFrame& frame) {
    number_ = seen_.frames;
    const Hash next = frame.is_data() ? sha256({view(seen_.chain), frame.chained}) : seen_.chain;
    if (frame.number != seen_.frames || frame.time_us < time_us_ || view(next) != frame.chain || !frame.zeros)
      found(fmt::format("frame {} with the chain {} and zeros between its parts", seen_.frames, to_hex(next)),
            fmt::format("at byte {}: frame {}, chain {}{}", frame.begin, frame.number, to_hex(frame.chain),
                        frame.zeros ? "" : ", other bytes between its parts"));
    time_us_ = frame.time_us;
    if (frame.about_bytes > static_cast<std::int64_t>(limits::capsule_about_bytes_max) ||
        (frame.type == commit_type &&
         frame.body_bytes >
             static_cast<std::int64_t>(commit_fixed_bytes + limits::capsule_segments_max * segment_row_bytes))) {
      found("a frame within the limits of the format",
            fmt::format("{} and {} bytes", frame.about_bytes, frame.body_bytes));
      return success();
    }
    if (frame.is_data()) rows_.push_back({frame.begin, frame.time_us, still_valid, next_chunk_, 0, frame.type, 0});
    if (frame.type == retraction_type) RETURN_IF_ERROR(check_retraction(frame));
    if (frame.type == segment_type) segments_.emplace(frame.body_at(), frame);
    if (frame.type == commit_type) RETURN_IF_ERROR(check_commit(frame));
    if (frame.type == document_type) RETURN_IF_ERROR(check_document(frame));
    if (frame.type == signature_type) RETURN_IF_ERROR(check_signature(frame));
    if (!frame.is_data()) return success();
    ++seen_.frames;
    seen_.unsigned_frames += frame.type == signature_type ? 0 : 1;
    seen_.documents += frame.type == document_type ? 1 : 0;
    std::memcpy(seen_.chain.data(), frame.chain.data(), seen_.chain.size());
    return success();
  }

  Status check_commit(const CapsuleFrame& frame) {
    ASSIGN_OR_RETURN(const std::string body,
                     read_at(file_, frame.body_at(), static_cast<std::size_t>(frame.body_bytes)));
    const auto count = body.size() < commit_fixed_bytes ? 0 : (body.size() - commit_fixed_bytes) / segment_row_bytes;
    const bool framed =
        frame.about_bytes == 0 && body.size() == commit_fixed_bytes + count * segment_row_bytes &&
        body.ends_with(commit_magic) && little_endian<std::int64_t>(body, body.size() - 16) == frame.begin &&
        little_endian<std::int64_t>(body, 8) == seen_.frames &&
        little_endian<std::uint64_t>(body, 16) <= static_cast<std::uint64_t>(seen_.frames) &&
        little_endian<std::uint64_t>(body, 32) >= file_header_bytes &&
        little_endian<std::uint64_t>(body, 32) <= static_cast<std::uint64_t>(frame.begin) &&
        std::string_view(body).substr(40, 32) == view(seen_.chain) && count == little_endian<std::uint64_t>(body, 72);
    if (!framed) {
      found("a commit of the frames before it", "a commit of others");
      return success();
    }
    commits_.push_back({little_endian<std::uint64_t>(body, 0), static_cast<std::uint64_t>(frame.begin),
                        static_cast<std::uint64_t>(frame.end)});
    for (std::size_t at = commit_fixed_bytes - 16; at + segment_row_bytes <= body.size() - 16;
         at += segment_row_bytes) {
      const auto index = segments_.find(little_endian<std::int64_t>(body, at + 8));
      const auto kind = little_endian<std::uint32_t>(body, at);
      const auto name_bytes = little_endian<std::int64_t>(body, at + 24);
      if (index == segments_.end() || kind == 0 || kind > last_kind || name_bytes < 0 ||
          name_bytes > index->second.body_bytes || padded(name_bytes) > index->second.body_bytes ||
          index->second.body_crc != little_endian<std::uint32_t>(body, at + 4) ||
          index->second.body_bytes != little_endian<std::int64_t>(body, at + 16) ||
          index->second.payload != std::string_view(body).substr(at + 40, 32))
        found("a commit of the indexes before it", "a commit of others");
    }
    return success();
  }

  Status check_document(const CapsuleFrame& frame) {
    ASSIGN_OR_RETURN(const std::string about,
                     read_at(file_, frame.about_at(), static_cast<std::size_t>(frame.about_bytes)));
    if (frame.body_bytes > whole_bytes_max) {
      found(fmt::format("a document of at most {} bytes", whole_bytes_max), fmt::format("{} bytes", frame.body_bytes));
      return success();
    }
    ASSIGN_OR_RETURN(const std::string body,
                     read_at(file_, frame.body_at(), static_cast<std::size_t>(frame.body_bytes)));
    const auto described = json::parse(about);
    if (!described) {
      found("a description in JSON", described.error().message, Check::document);
      return success();
    }
    const json::Value revision = described->root();
    const auto size = static_cast<std::size_t>(
        std::clamp<std::int64_t>(revision["size_bytes"].as_int().value_or(-1), 0, frame.body_bytes));
    const std::string_view bytes = std::string_view(body).substr(0, size),
                           text = size < body.size() ? std::string_view(body).substr(size) : bytes;
    if (const std::string hash = to_hex(sha256(bytes)); hash != revision["bytes_hash"].string_or(""))
      found("bytes_hash = " + std::string(revision["bytes_hash"].string_or("")), hash, Check::document);
    std::int64_t before = 0, total = 0;
    for (const json::Value chunk : revision["chunks"]) {
      std::vector<json::Value> parts;  // start, end, SHA-256
      for (const json::Value part : chunk) parts.push_back(part);
      parts.resize(std::max<std::size_t>(parts.size(), 3));
      const auto start = parts[0].as_int().value_or(-1), end = parts[1].as_int().value_or(-1);
      bool inside = before <= start && start <= end && end <= std::ssize(text);
      if (inside) total += end - start;
      inside = inside && total <= 4 * std::ssize(text) + piece_bytes;
      const std::string hash =
          inside ? to_hex(sha256(text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start))))
                 : "a span outside of the text, or not in order";
      if (hash != parts[2].string_or("")) found("sha256 = " + parts[2].string_or(""), hash, Check::passage);
      if (!inside) break;
      before = start;
    }
    const std::string uri = revision["uri"].string_or("");
    end_current(uri, frame.number, false);
    rows_.back().chunks = static_cast<std::uint32_t>(revision["chunks"].size());
    next_chunk_ += rows_.back().chunks;
    current_[uri] = std::ssize(rows_) - 1;
    document_keys_.emplace_back(little_endian<std::uint64_t>(view(sha256(uri)), 0), frame.number);
    return success();
  }

  Status check_retraction(const CapsuleFrame& frame) {
    ASSIGN_OR_RETURN(const std::string about,
                     read_at(file_, frame.about_at(), static_cast<std::size_t>(frame.about_bytes)));
    if (const auto described = json::parse(about)) {
      end_current(described->root()["uri"].string_or(""), frame.number, true);
    } else {
      found("a description in JSON", described.error().message, Check::document);
    }
    return success();
  }

  void end_current(const std::string& uri, std::int64_t number, bool retracted) {
    const auto known = current_.find(uri);
    if (known == current_.end()) return;
    FrameRow& row = rows_[static_cast<std::size_t>(known->second)];
    row.valid_to = number;
    row.retracted = retracted ? 1 : 0;
    current_.erase(known);
  }

  // Readers find frames and documents by two segments of the newest commit, which must be those of the frames.
  Status check_places() {
    ASSIGN_OR_RETURN(const std::string body,
                     read_at(file_, newest_.body_at(), static_cast<std::size_t>(newest_.body_bytes)));
    const auto indexed = little_endian<std::int64_t>(body, 16);
    std::string frames, documents;
    for (std::int64_t number = 0; number < indexed; ++number) {
      FrameRow row = rows_[static_cast<std::size_t>(number)];
      if (row.valid_to >= indexed) row.valid_to = still_valid, row.retracted = 0;
      frames.append(reinterpret_cast<const char*>(&row), sizeof row);
    }
    std::erase_if(document_keys_, [indexed](const auto& key) { return key.second >= indexed; });
    std::ranges::sort(document_keys_);
    for (const auto& [key, number] : document_keys_) {
      documents.append(reinterpret_cast<const char*>(&key), sizeof key);
      documents.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    for (std::size_t at = commit_fixed_bytes - 16; at + segment_row_bytes <= body.size() - 16;
         at += segment_row_bytes) {
      const auto kind = little_endian<std::uint32_t>(body, at);
      if (kind != frames_kind && kind != documents_kind) continue;
      const std::string& wanted = kind == frames_kind ? frames : documents;
      const auto begin = little_endian<std::int64_t>(body, at + 8), bytes = little_endian<std::int64_t>(body, at + 16);
      const bool same_size = bytes == std::ssize(wanted);
      ASSIGN_OR_RETURN(const std::string held, read_at(file_, begin, same_size ? wanted.size() : 0));
      if (held != wanted || !same_size)
        found("the places of the frames and documents",
              kind == frames_kind ? "other places of frames" : "other places of documents");
    }
    return success();
  }

  Status check_signature(const CapsuleFrame& frame) {
    if (frame.body_bytes > static_cast<std::int64_t>(limits::note_bytes_max)) {
      found(fmt::format("a note of at most {} bytes", limits::note_bytes_max),
            fmt::format("{} bytes", frame.body_bytes), Check::checkpoint_signature);
      return success();
    }
    ASSIGN_OR_RETURN(const std::string body,
                     read_at(file_, frame.body_at(), static_cast<std::size_t>(frame.body_bytes)));
    const auto note = parse_checkpoint_file(body);
    if (!note || !note->note) {
      found("a signed note", note ? "a note without a signature" : note.error().message, Check::checkpoint_signature);
      return success();
    }
    const Checkpoint& covered = note->checkpoint;
    const std::string origin = "muniment-capsule/" + report_.id;
    if (covered.origin != origin || covered.size != frame.number || covered.root != seen_.chain) {
      found(fmt::format("a signature of {}, {} frames, chain {}", origin, frame.number, to_hex(seen_.chain)),
            fmt::format("{}, {} frames, chain {}", covered.origin, covered.size, to_hex(covered.root)),
            Check::checkpoint_root);
      return success();
    }
    Signatures& facts = seen_.signatures;
    ++facts.checkpoints;
    facts.without_key = keys_.empty();
    const auto signers = signers_of(*note->note, keys_);
    if (!signers) {
      found("signatures that verify", signers.error().message, Check::checkpoint_signature);
      return success();
    }
    for (const Signed& signer : *signers) {
      if (signer.key->type != KeyType::ed25519) continue;
      facts.keys.push_back({signer.key->text(), -1, covered.size - 1});
      facts.upto = covered.size - 1;
      seen_.unsigned_frames = 0;
    }
    if (!keys_.empty() && facts.keys.empty()) facts.wrong_key = wrong_key_text(origin, *note->note, keys_);
    if (!facts.keys.empty()) facts.wrong_key.clear();
    return success();
  }

  void conclude() {
    report_.frames = state_.frames;
    report_.documents = state_.documents;
    report_.unsigned_frames = state_.unsigned_frames;
    report_.chain = state_.chain;
    report_.signatures = state_.signatures;
    report_.findings = findings_.first();
    report_.verdict = !report_.findings.empty() ? Verdict::tampered
                      : report_.signatures.upto < 0
                          ? (report_.signatures.wrong_key.empty() ? Verdict::is_unsigned : Verdict::wrong_key)
                      : report_.unsigned_frames > 0 ? Verdict::unsigned_tail
                                                    : Verdict::verified;
  }

  const Fd& file_;
  const std::int64_t size_;
  const std::vector<VerifierKey>& keys_;
  CapsuleReport& report_;
  Findings findings_;
  Counts seen_, state_;
  std::map<std::int64_t, CapsuleFrame> segments_;  // by the offset of their bodies
  std::vector<Place> marks_, commits_;
  CapsuleFrame newest_;  // commit
  std::vector<FrameRow> rows_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> document_keys_;  // of documents: of their URI, and number
  std::map<std::string, std::int64_t> current_;  // place in `rows_` of the current revision by URI
  std::uint32_t next_chunk_ = 1;                 // passages are counted from 1
  std::int64_t marked_end_ = 0;                  // of the newest commit
  std::int64_t number_ = 0, time_us_ = INT64_MIN;
};

std::string headline(const CapsuleReport& report) {
  switch (report.verdict) {
    case Verdict::verified: return fmt::format("VERIFIED: every frame, {}", vouchers(report.signatures));
    case Verdict::unsigned_tail:
      return fmt::format("CONSISTENT, UNSIGNED TAIL: {}, but not the {} frames after it", vouchers(report.signatures),
                         number(report.unsigned_frames));
    case Verdict::is_unsigned:
      return fmt::format("CONSISTENT, UNSIGNED: {}", report.signatures.without_key
                                                         ? "no key was given to check the signature (--key FILE)"
                                                         : "the capsule has no signature (muniment capsule sign)");
    case Verdict::wrong_key: return "WRONG KEY: " + report.signatures.wrong_key;
    case Verdict::tampered: return fmt::format("TAMPERED OR CORRUPT: {}", place_of(report.findings.front()));
    case Verdict::unknown_schema:
    case Verdict::unreadable:
    case Verdict::incomplete: break;
  }
  return "UNREADABLE: " + report.problem;
}

}  // namespace

CapsuleReport judge_capsule(const Fd& file, std::int64_t size, const std::vector<VerifierKey>& keys) {
  CapsuleReport report;
  if (const Status judged = CapsuleJudge(file, size, keys, report).judge(); !judged) {
    report.verdict = Verdict::unreadable;
    report.problem = judged.error().message;
  }
  return report;
}

CapsuleReport verify_capsule(const CapsuleOptions& options) {
  const Clock clock;
  const Time started = clock.now();
  CapsuleReport report;
  const auto keys = read_keys(options.keys);
  const auto file = open_named(options.capsule);
  if (!keys || !file) {
    report.problem = (keys ? file.error() : keys.error()).message;
  } else {
    report = judge_capsule(file->fd, file->size, *keys);
  }
  report.started = started;
  report.ended = clock.now();
  return report;
}

std::string text_of(const CapsuleReport& report) {
  std::string text = escape_for_terminal(headline(report)) + '\n';
  if (!report.findings.empty()) text += findings_text(report.findings, report.findings.size(), nullptr);
  if (report.verdict == Verdict::unreadable) return text;
  text += fmt::format("  {} frames ({} revisions of documents), chain {}\n", number(report.frames),
                      number(report.documents), to_hex(report.chain));
  if (report.torn_bytes > 0)
    text += fmt::format("  {} bytes after the newest complete commit are ignored\n", number(report.torn_bytes));
  return text + "  a signature does not cover the indexes; they are written anew by: muniment capsule compact FILE\n";
}

std::string json_of(const CapsuleReport& report) {
  json::Writer out;
  out.begin_object().member("verdict", name_of(report.verdict)).member("what", "capsule").member("id", report.id);
  out.member("frames", report.frames).member("documents", report.documents).member("chain", to_hex(report.chain));
  out.member("unsigned_frames", report.unsigned_frames).member("torn_bytes", report.torn_bytes);
  write_signatures(out, report.signatures);
  if (!report.problem.empty()) out.member("problem", report.problem);
  write_findings(out, report.findings, nullptr);
  out.member("tool", "muniment-verify " MUNIMENT_VERSION).member("started", format_time(report.started));
  out.member("ended", format_time(report.ended)).end_object();
  return std::move(out).text() + '\n';
}

}  // namespace muniment::verify
