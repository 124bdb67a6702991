#include "verify/indexes/shard_files.hpp"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <optional>

#include "base/files/file.hpp"
#include "verify/big_endian.hpp"

namespace muniment::verify {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read without byte swapping");

constexpr std::uint32_t format_version = 1;
constexpr std::size_t kind_at = 5, id_at = 6, vector_head_bytes = 28, code_bytes_step = 32;

// Keeps RocksDB from writing its log into the folder.
class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

Error error_of(const rocksdb::Status& status, const std::string& folder) {
  const bool gone = status.IsIOError() || status.IsNotFound() || status.IsTryAgain() || status.IsBusy();
  return Error(gone ? Errc::unavailable : Errc::corrupt, folder + ": " + status.ToString());
}

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T get() {
    T value{};
    whole_ = whole_ && rest_.size() >= sizeof value;
    if (!whole_) return value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  bool whole() const { return whole_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool whole_ = true;
};

// Source: docs/format.md, Vector shard, Digest.
std::uint64_t record_hash(std::string_view key, std::string_view value) {
  constexpr std::uint64_t factor = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t hash = (key.size() << 32 | value.size()) * factor;
  for (std::string_view part : {key, value}) {
    while (!part.empty()) {
      std::uint64_t word = 0;
      const std::size_t taken = std::min(part.size(), sizeof word);
      std::memcpy(&word, part.data(), taken);
      part.remove_prefix(taken);
      hash = (hash ^ word) * factor;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

std::string space_prefix(std::uint32_t number) {
  std::string key(1, '\1');
  for (int shift = 24; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift & 0xff);
  return key;
}

std::optional<ShardSpace> space_in(std::string_view key, std::string_view value) {
  Bytes bytes(value);
  ShardSpace space;
  space.number = static_cast<std::uint32_t>(big_endian(key.substr(1, 4)));
  space.dimension = bytes.get<std::uint32_t>();
  bytes.get<std::uint32_t>();  // slots
  bytes.get<std::uint32_t>();  // entry
  space.vectors = bytes.get<std::uint32_t>();
  space.next_seq = bytes.get<std::int64_t>();
  space.closed = bytes.get<std::uint64_t>();
  space.live_digest = bytes.get<std::uint64_t>();
  space.closed_digest = bytes.get<std::uint64_t>();
  space.name = bytes.rest();
  return bytes.whole() ? std::optional(std::move(space)) : std::nullopt;
}

struct Vector {
  std::int64_t chunk = 0;
  IndexedFacts facts;
};

std::optional<Vector> vector_in(std::string_view value, std::size_t dimension) {
  Bytes bytes(value);
  Vector vector;
  vector.chunk = bytes.get<std::uint32_t>();
  bytes.get<std::uint16_t>();  // level, 0
  const auto labels = bytes.get<std::uint16_t>();
  bytes.get<float>();  // scale
  vector.facts.time_us = bytes.get<std::int64_t>();
  vector.facts.valid_from = bytes.get<std::int64_t>();
  const std::size_t code = (dimension + code_bytes_step - 1) / code_bytes_step * code_bytes_step;
  if (!bytes.whole() || value.size() != vector_head_bytes + labels * sizeof(std::uint64_t) + code) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (std::uint16_t i = 0; i < labels; ++i) numbers.push_back(bytes.get<std::uint64_t>());
  vector.facts.labels = digest_of_labels(std::move(numbers));
  return vector;
}

}  // namespace

struct ShardFiles::Impl {
  std::string folder;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<ShardSpace> spaces;
  bool erasing = false;

  // Visits every record whose key begins with `prefix`.
  template <typename Take>
  Status scan(const std::string& prefix, Take take) const {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> records(db->NewIterator(options));
    for (records->Seek(prefix); records->Valid() && records->key().starts_with(prefix); records->Next()) {
      RETURN_IF_ERROR(take(std::string_view(records->key().data(), records->key().size()),
                           std::string_view(records->value().data(), records->value().size())));
    }
    return records->status().ok() ? success() : Status(error_of(records->status(), folder));
  }

  Error damaged(const std::string& what) const { return Error(Errc::corrupt, folder + ": " + what); }

  Status read_spaces() {
    std::uint64_t digest = 0, wanted = 0, counted = 0;
    RETURN_IF_ERROR(scan(std::string(1, '\0'), [&](std::string_view, std::string_view value) -> Status {
      Bytes bytes(value);
      const auto version = bytes.get<std::uint32_t>();
      bytes.get<std::uint32_t>();  // number of the next space
      counted = bytes.get<std::uint32_t>();
      wanted = bytes.get<std::uint64_t>();
      erasing = bytes.get<std::uint32_t>() != 0;
      return bytes.whole() && version == format_version ? success() : Status(damaged("its own record is malformed"));
    }));
    // The record of a space has the first of its keys, so the scan skips from space to space.
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    const std::unique_ptr<rocksdb::Iterator> records(db->NewIterator(options));
    for (records->Seek(std::string(1, '\1')); records->Valid(); records->Seek(space_prefix(spaces.back().number + 1))) {
      const std::string key = records->key().ToString(), value = records->value().ToString();
      auto space =
          key.size() == id_at && key.front() == '\1' && key[kind_at] == 'a' ? space_in(key, value) : std::nullopt;
      if (!space) return damaged("the record of a space is missing or malformed");
      digest += record_hash(key, value);
      spaces.push_back(*std::move(space));
    }
    if (!records->status().ok()) return error_of(records->status(), folder);
    return digest == wanted && spaces.size() == counted ? success()
                                                        : Status(damaged("its spaces differ from the recorded number"));
  }
};

ShardFiles::ShardFiles(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShardFiles::ShardFiles(ShardFiles&&) noexcept = default;
ShardFiles::~ShardFiles() = default;

Result<ShardFiles> ShardFiles::open(const std::string& folder) {
  struct stat about {};
  if (::stat((folder + "/CURRENT").c_str(), &about) != 0) {
    return errno == ENOENT ? Error(Errc::not_found, folder + ": there is no vector shard")
                           : file_error("reading", folder, errno);
  }
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  rocksdb::Options options;
  options.info_log = std::make_shared<NoLog>();
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.skip_stats_update_on_db_open = true;
  options.max_open_files = -1;  // opens every file now, because the writer replaces them
  rocksdb::DB* db = nullptr;
  try {
    if (const auto status = rocksdb::DB::OpenForReadOnly(options, folder, &db); !status.ok())
      return error_of(status, folder);
  } catch (const std::exception& thrown) {  // for example, an allocation of a damaged length
    return Error(Errc::corrupt, folder + ": " + thrown.what());
  }
  impl->db.reset(db);
  RETURN_IF_ERROR(impl->read_spaces());
  return ShardFiles(std::move(impl));
}

const std::vector<ShardSpace>& ShardFiles::spaces() const { return impl_->spaces; }
bool ShardFiles::erasing() const { return impl_->erasing; }

Status ShardFiles::visit(const ShardSpace& space, const Visit& visit) const {
  std::uint64_t live_digest = 0, closed_digest = 0, vectors = 0, closed = 0;
  RETURN_IF_ERROR(impl_->scan(space_prefix(space.number), [&](std::string_view key, std::string_view value) -> Status {
    const char kind = key.size() > id_at ? key[kind_at] : 'a';
    if (kind == 'g' || kind == 'n') live_digest += record_hash(key, value);
    if (kind == 'c' || kind == 'h') closed_digest += record_hash(key, value);
    if (kind != 'n' && kind != 'h') return success();
    auto vector = vector_in(value, space.dimension);
    if (!vector) return impl_->damaged("a vector of " + space.name + " is malformed");
    ++(kind == 'n' ? vectors : closed);
    if (kind == 'h')
      vector->facts.valid_to = static_cast<std::int64_t>(big_endian(key.substr(id_at, 8)) ^ std::uint64_t{1} << 63);
    visit(kind == 'n', vector->chunk, vector->facts);
    return success();
  }));
  if (vectors == space.vectors && closed == space.closed && live_digest == space.live_digest &&
      closed_digest == space.closed_digest)
    return success();
  return impl_->damaged(space.name + " has missing or stale records");
}

}  // namespace muniment::verify
