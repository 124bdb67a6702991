#include "store/append/written_end.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/crypto/hmac.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"

namespace muniment::store {
namespace {

// Records of earlier versions have no boot id.
constexpr std::string_view magic = "muniment-end-2\n\n", earlier_magic = "muniment-end-1\n\n";
constexpr std::size_t key_bytes = 32;
constexpr std::string_view key_name = "/writer.key", record_name = "/last_written";
// Each of the two records has its own sector, so that a torn write leaves the other intact
constexpr std::size_t place_bytes = 512;
constexpr std::size_t earlier_bytes = magic.size() + 16 + 8 + 1 + 2 * (8 + sizeof(Hash));
constexpr std::size_t record_bytes = earlier_bytes + 16;
constexpr const char* boot_id_path = "/proc/sys/kernel/random/boot_id";

void put_number(std::string& out, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xFF);
}

void put_end(std::string& out, const LogEnd& end) {
  put_number(out, static_cast<std::uint64_t>(end.size));
  out += view(end.root);
}

// Removes fields from the front of the remaining bytes.
struct Taker {
  std::string_view left;

  std::string_view take(std::size_t size) {
    const std::string_view part = left.substr(0, size);
    left.remove_prefix(size);
    return part;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (const char byte : take(8)) value = value << 8 | static_cast<std::uint8_t>(byte);
    return value;
  }
  LogEnd end() {
    LogEnd end;
    end.size = static_cast<std::int64_t>(number());
    const std::string_view root = take(sizeof(Hash));
    std::copy(root.begin(), root.end(), end.root.begin());
    return end;
  }
};

// Returns nullopt if there is no key.
Result<std::optional<std::string>> kept_key(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    if (errno != ENOENT) return file_error("reading", path, errno);
    return std::optional<std::string>();
  }
  if ((about.st_mode & 077) != 0) {
    return Error(Errc::denied, fmt::format("{} can be read by others (mode {:03o}); it must be 600: chmod 600 {}", path,
                                           about.st_mode & 0777, path));
  }
  ASSIGN_OR_RETURN(std::string key, read_file(path, key_bytes + 1));
  if (key.size() == key_bytes) return std::optional(std::move(key));
  return Error(
      Errc::corrupt,
      fmt::format(
          "{} is not a key of {} bytes. Remove it: the next start then adopts the events in the log and records that",
          path, key_bytes));
}

// Returns the id that the kernel drew when the machine started; all zeros if it has none.
Uuid read_boot_id() {
  std::array<char, 36> text{};
  const Fd file(::open(boot_id_path, O_RDONLY | O_CLOEXEC));
  if (!file.open() || ::read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
  return parse_uuid({text.data(), text.size()}).value_or(Uuid{});
}

const Uuid& boot_id() {
  static const Uuid id = read_boot_id();
  return id;
}

Uuid take_uuid(Taker& parts) {
  Uuid id;
  const std::string_view bytes = parts.take(id.bytes.size());
  std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

std::string drawn_key() {
  std::string key(key_bytes, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(key.data()), key.size());
  return key;
}

}  // namespace

Result<std::unique_ptr<WrittenEnd>> WrittenEnd::open(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", folder, errno);
  ASSIGN_OR_RETURN(auto key, kept_key(folder + std::string(key_name)));
  const std::string path = folder + std::string(record_name);
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || about.st_size != static_cast<off_t>(2 * place_bytes)) {
    RETURN_IF_ERROR(write_file_durably(path, std::string(2 * place_bytes, '\0'), 0600));
  }
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.open()) return file_error("opening", path, errno);
  std::unique_ptr<WrittenEnd> end(new WrittenEnd(folder, std::move(file), key ? *key : drawn_key(), key.has_value()));
  end->found_ = end->read();
  return end;
}

Result<std::optional<WrittenEnd::Record>> WrittenEnd::find(const std::string& folder) {
  ASSIGN_OR_RETURN(auto key, kept_key(folder + std::string(key_name)));
  const std::string path = folder + std::string(record_name);
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.open() && errno != ENOENT) return file_error("opening", path, errno);
  if (!key || !file.open()) return std::optional<Record>();
  return WrittenEnd(folder, std::move(file), std::move(*key), true).read();
}

std::string WrittenEnd::key_for(std::string_view purpose) const {
  return std::string(view(hmac_sha256(key_, {"muniment-key\n", purpose})));
}

// Returns the newer of the two records that are authenticated by the key.
std::optional<WrittenEnd::Record> WrittenEnd::read() {
  std::optional<Record> newest;
  for (std::int64_t place = 0; place < 2; ++place) {
    std::uint64_t count = 0;
    const auto record = record_at(place, count);
    if (!record || (newest && count < count_)) continue;
    count_ = count;
    newest = record;
  }
  return newest;
}

std::optional<WrittenEnd::Record> WrittenEnd::record_at(std::int64_t place, std::uint64_t& count) const {
  const auto bytes = read_at(file_, place * static_cast<std::int64_t>(place_bytes), record_bytes + sizeof(Hash));
  if (!bytes || bytes->size() < record_bytes + sizeof(Hash)) return std::nullopt;
  const bool earlier = bytes->starts_with(earlier_magic);
  const std::string_view text = std::string_view(*bytes).substr(0, earlier ? earlier_bytes : record_bytes);
  const std::string_view seal = std::string_view(*bytes).substr(text.size(), sizeof(Hash));
  if (!equal_hashes(view(hmac_sha256(key_, {text})), seal)) return std::nullopt;
  Taker parts{text};
  if (const std::string_view head = parts.take(magic.size()); head != magic && head != earlier_magic)
    return std::nullopt;
  Record record;
  record.log_id = take_uuid(parts);
  count = parts.number();
  record.stopped = parts.take(1) != std::string_view("\0", 1);
  record.committed = parts.end();
  record.intended = parts.end();
  if (!earlier) {
    const Uuid boot = take_uuid(parts);
    record.exact = boot != Uuid{} && boot == boot_id() && !FAILPOINT_FAILS("written_end.other_boot");
  }
  return record;
}

Status WrittenEnd::write(const Record& record) {
  std::string bytes;
  bytes.reserve(record_bytes + sizeof(Hash));
  bytes += magic;
  bytes.append(record.log_id.bytes.begin(), record.log_id.bytes.end());
  put_number(bytes, count_ + 1);
  bytes += static_cast<char>(record.stopped);
  put_end(bytes, record.committed);
  put_end(bytes, record.intended);
  bytes.append(boot_id().bytes.begin(), boot_id().bytes.end());
  bytes += view(hmac_sha256(key_, {bytes}));
  const auto place = static_cast<off_t>((count_ + 1) % 2 * place_bytes);
  const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), place);
  if (written < 0) return file_error("writing", folder_ + std::string(record_name), errno);
  if (static_cast<std::size_t>(written) != bytes.size()) {
    return Error(Errc::system_error, fmt::format("writing {}{}: it was cut short", folder_, record_name));
  }
  ++count_;  // incremented last: a retry overwrites the same slot, and the other slot keeps the last valid record
  return success();
}

Status WrittenEnd::sync() {
  if (::fdatasync(file_.get()) != 0) return file_error("syncing", folder_ + std::string(record_name), errno);
  return success();
}

Status WrittenEnd::begin(const Uuid& log_id, const LogEnd& committed) {
  log_id_ = log_id;
  begun_ = true;
  RETURN_IF_ERROR(write({log_id, committed, committed, false}));
  RETURN_IF_ERROR(sync());
  if (key_is_kept_) return success();
  RETURN_IF_ERROR(write_file_durably(folder_ + std::string(key_name), key_, 0600));
  key_is_kept_ = true;
  return success();
}

LogEnd WrittenEnd::end_of(const events::MerkleEdge& edge) {
  if (edge != noted_) {
    noted_root_ = edge.root();
    noted_ = edge;
  }
  return {edge.size(), noted_root_};
}

void WrittenEnd::note(const events::MerkleEdge& committed, const events::MerkleEdge& intended) {
  if (!begun_) return;
  const LogEnd is = end_of(committed), will_be = end_of(intended);
  const Status written = write({log_id_, is, will_be, false});
  if (!written && !failed_) log_error("the written end cannot be stored", {{"error", written.error().message}});
  failed_ = !written;
}

Status WrittenEnd::stop(const LogEnd& committed) {
  if (!begun_) return success();
  RETURN_IF_ERROR(write({log_id_, committed, committed, true}));
  return sync();
}

}  // namespace muniment::store
