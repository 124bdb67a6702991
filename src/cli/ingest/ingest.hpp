// Sends files to a corpus: compares them with its documents, sends new and changed ones, and reports each result.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/ingest/file_candidate.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

// Settings of all documents of a call.
struct IngestTarget {
  std::string corpus;
  std::vector<std::string> tags;  // sorted, without duplicates
  std::string trust = "untrusted";
  std::string language;  // ISO 639 or "none"; empty: detected
};

// The number of files of a kind and the first of them, because a folder may contain millions.
struct Notes {
  std::uint64_t count = 0;
  std::vector<std::pair<std::string, std::string>> first;  // path and reason
  void add(std::string_view path, std::string_view why);
};

struct IngestReport {
  std::uint64_t added = 0, changed = 0, unchanged = 0, ignored = 0;
  std::uint64_t bytes = 0;  // bytes added or changed
  Notes skipped, failed, gone;
  std::vector<std::pair<std::string, std::int64_t>>
      sent;  // id and number of passages of each document added or changed
  std::uint64_t retracted = 0;
  std::string run_id;     // run with the artifacts of this call; empty: none
  std::int64_t seq = -1;  // seq of the last event
};

// Index of the documents in a corpus, in less than 100 bytes per document, to detect unchanged files.
class KnownDocuments {
 public:
  // `visit` gets the row of each document.
  Status load(Client& client, const IngestTarget& target, const std::function<void(const json::Value&)>& visit);

  enum class Standing : std::uint8_t { absent, other, same };
  // `source` is the source that the document of the file would get.
  Standing of(std::string_view id, const Hash& bytes_hash, std::string_view source) const;

 private:
  struct Key {  // half a SHA-256
    std::uint64_t a = 0, b = 0;
    bool operator==(const Key&) const = default;
  };
  struct HashOfKey {
    std::size_t operator()(const Key& key) const { return key.a; }
  };
  static Key key_of(const Hash& hash);
  struct Known {
    Key revision;  // prefix of its hash …
    Key source;    // … and of its source
    std::uint32_t chunker = 0;
    bool as_described = false;  // tags, trust and a given language equal those of the call
  };
  std::unordered_map<Key, Known, HashOfKey> known_;
  std::vector<std::string> chunkers_;
};

// Collects documents and sends as many per request as fit.
class IngestSender {
 public:
  IngestSender(Client& client, IngestTarget target, IngestReport& report);

  // Adds a file. Errors end the ingest: transient ones and refusals of the whole request. A problem of this file alone
  // is reported as a note.
  Status add(const std::string& id, const std::string& source, FileCandidate& file, bool is_new);
  // Sends the remaining documents; with `wait`, waits until they are indexed. Ends the run of the artifacts.
  Status finish(bool wait);

 private:
  Result<std::string> upload(const std::string& id, FileCandidate& file);
  struct Queued {
    std::string id;
    std::string text;  // a JSON object
    bool is_new = false;
    std::int64_t bytes = 0;
  };
  Status send(bool wait);
  Status send_each(bool wait, const Error& refused);
  Result<Message> request(std::span<const Queued> documents, bool wait);
  void count(const json::Value& result);

  Client& client_;
  IngestTarget target_;
  IngestReport& report_;
  std::vector<Queued> batch_;
  std::size_t batch_bytes_ = 0;      // size of the batch's texts
  std::int64_t artifact_bytes_ = 0;  // artifact bytes in the batch, which the daemon reads at once
};

}  // namespace muniment::cli
