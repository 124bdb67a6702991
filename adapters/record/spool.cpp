#include "adapters/record/spool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view waiting_suffix = ".json";
constexpr std::string_view refused_suffix = ".refused";

struct Held {
  std::vector<std::string> names;  // pending deliveries, oldest first
  std::size_t files = 0;           // including refused deliveries
  std::uint64_t bytes = 0;
};

// A missing folder counts as empty. Files that disappear were sent by another recorder.
Held list_held(const std::string& folder, bool sizes) {
  Held held;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;  // being written
    ++held.files;
    std::error_code gone;
    if (sizes) {
      const std::uintmax_t size = fs::file_size(entry->path(), gone);
      if (!gone) held.bytes += size;
    }
    if (name.ends_with(waiting_suffix)) held.names.push_back(name);
  }
  std::ranges::sort(held.names);
  return held;
}

Result<Delivery> read_delivery(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, spool_bytes_max));
  ASSIGN_OR_RETURN(const json::Document document, json::parse(std::string_view(text)));
  return delivery_of_json(document.root());
}

}  // namespace

Status Spool::keep(const Delivery& delivery, Time now) const {
  std::error_code failed;
  const bool made = fs::create_directories(folder_, failed);
  if (failed) return Error(Errc::denied, fmt::format("cannot create the spool {}: {}", folder_, failed.message()));
  if (made)
    fs::permissions(folder_, fs::perms::owner_all, failed);  // permissions of an existing folder are not changed
  const std::string text = delivery_json(delivery, true);
  const Held held = list_held(folder_, true);
  if (held.files >= spool_files_max || held.bytes + text.size() > spool_bytes_max) {
    return Error(Errc::over_budget,
                 fmt::format("the spool {} contains {} files and {}, limit {} and {}", folder_, grouped(held.files),
                             human_size(held.bytes), grouped(spool_files_max), human_size(spool_bytes_max)));
  }
  return write_file_durably(
      fmt::format("{}/{:020}-{}{}", folder_, now.micros, make_uuid_v7(now).text(), waiting_suffix), text);
}

Spooled Spool::send(const std::function<Status(const Delivery&)>& deliver, Monotonic until) const {
  Spooled outcome;
  const Held held = list_held(folder_, false);
  for (const std::string& name : held.names) {
    const std::string path = folder_ + "/" + name;
    if (std::chrono::steady_clock::now() >= until) {
      outcome.why = "the time limit was reached";
      break;
    }
    auto delivery = read_delivery(path);
    if (!delivery && delivery.error().code == Errc::not_found) continue;
    const Status status = delivery ? deliver(*delivery) : Status(std::move(delivery).error());
    if (!status && (is_transient(status.error().code) || status.error().code == Errc::over_budget)) {
      outcome.why = status.error().message;
      break;
    }
    std::error_code failed;
    if (status) {
      fs::remove(path, failed);
      ++outcome.sent;
    } else {
      fs::rename(path, path + std::string(refused_suffix), failed);
      outcome.why = status.error().message;
      ++outcome.refused;
    }
  }
  outcome.left = list_held(folder_, false).names.size();
  return outcome;
}

}  // namespace muniment::cli
