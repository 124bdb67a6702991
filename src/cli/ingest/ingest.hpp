// Files on their way into a corpus: what is there already, what has to be sent and how, and what became of each.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/connect/client.hpp"
#include "cli/ingest/file_candidate.hpp"

namespace muniment::cli {

// What holds for all documents of a call.
struct IngestTarget {
  std::string corpus;
  std::vector<std::string> tags;  // sorted, each once
  std::string trust = "untrusted";
};

// How many, and which the first ones were: a folder may hold a million of a kind.
struct Notes {
  std::uint64_t count = 0;
  std::vector<std::pair<std::string, std::string>> first;  // path, why
  void add(std::string_view path, std::string_view why);
};

struct IngestReport {
  std::uint64_t added = 0, changed = 0, unchanged = 0, ignored = 0;
  std::uint64_t bytes = 0;  // of what was added or changed
  Notes skipped, failed, gone;
  std::uint64_t retracted = 0;
  std::string run_id;     // that holds artifacts of this call; empty: none
  std::int64_t seq = -1;  // the last event
};

// A page after the other of document.list; no such corpus is an empty one.
Status for_each_document(Client& client, const std::string& corpus,
                         const std::function<Status(const json::Value&)>& visit);

// What the corpus holds, in less than 100 bytes a document: enough to tell whether a file is in it as it is.
class KnownDocuments {
 public:
  Status load(Client& client, const IngestTarget& target);

  enum class Standing : std::uint8_t { absent, other, same };
  // `source`: what the file's document would be said to come from.
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
    Key revision;  // its hash …
    Key source;    // … and what it comes from
    std::uint32_t chunker = 0;
    bool as_described = false;  // tags and trust are those of the call
  };
  std::unordered_map<Key, Known, HashOfKey> known_;
  std::vector<std::string> chunkers_;
};

// Collects documents and sends them, as many in a request as fit.
class IngestSender {
 public:
  IngestSender(Client& client, IngestTarget target, IngestReport& report);

  // Errors end the ingest: transient ones, and refusals of the whole. What concerns this file alone is a note.
  Status add(const std::string& id, const std::string& source, FileCandidate& file, bool is_new);
  // Sends what is left; with `wait`, until queries find it. Ends the run of the artifacts.
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
  std::size_t batch_bytes_ = 0;      // of its texts
  std::int64_t artifact_bytes_ = 0;  // of the batch: the daemon reads them all at once
};

}  // namespace muniment::cli
