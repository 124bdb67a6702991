#include "store/files/body_archive.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/files/file.hpp"
#include "base/tile_path.hpp"

namespace muniment::store {
namespace {

std::string file_of(const std::string& folder, std::int64_t index) { return folder + "/" + bodies_path(index); }

Error not_there(const events::Event& event, const std::string& why) {
  return Error(Errc::corrupt, "the archived body of event " + std::to_string(event.seq) + " cannot be read: " + why +
                                  ". Restore the archive's folder from a backup, and run muniment-verify");
}

Status fill(events::Event& event, std::optional<ArchivedBody>& archived) {
  if (!archived) {  // the row was read before it was erased
    event.salt.reset();
    return success();
  }
  if (archived->salt != *event.salt || sha256({view(archived->salt), archived->body}) != event.body_hash) {
    return not_there(event, "it does not match its hash");
  }
  event.body = std::move(archived->body);
  return success();
}

Status sync_folder(const std::string& path) {
  ASSIGN_OR_RETURN(const Fd folder, open_folder(path));
  return ::fsync(folder.get()) == 0 ? success() : Status(file_error("syncing the folder", path, errno));
}

// Creates the folders above a file, each durable in its parent.
Status make_folders(const std::string& path, std::size_t root_bytes) {
  for (auto end = path.find('/', root_bytes + 1); end != std::string::npos; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), 0700) == 0) {
      RETURN_IF_ERROR(sync_folder(folder.substr(0, folder.rfind('/'))));
    } else if (errno != EEXIST) {
      return file_error("making", folder, errno);
    }
  }
  return success();
}

}  // namespace

Status fill_archived(const std::string& folder, std::span<events::Event> events) {
  std::map<std::int64_t, std::vector<events::Event*>> wanted;  // key: the bundle, so that each is read once
  for (events::Event& event : events) {
    if (event.salt && !event.body) wanted[event.seq / tile_width].push_back(&event);
  }
  for (auto& [index, of_bundle] : wanted) {
    auto bundle = read_bodies(folder, index);
    if (!bundle) return not_there(*of_bundle.front(), bundle.error().message);
    for (events::Event* const event : of_bundle) {
      RETURN_IF_ERROR(fill(*event, (*bundle)[static_cast<std::size_t>(event->seq % tile_width)]));
    }
  }
  return success();
}

bool BodyArchive::has(std::int64_t index) const {
  struct stat found {};
  return ::stat(file_of(folder_, index).c_str(), &found) == 0;
}

Result<BodyBundle> BodyArchive::read(std::int64_t index) const { return read_bodies(folder_, index); }

Status BodyArchive::write(std::int64_t index, const std::function<Result<BodyBundle>()>& rows) {
  const std::lock_guard lock(moving_);
  ASSIGN_OR_RETURN(const BodyBundle bundle, rows());
  return replace(index, bundle);
}

Status BodyArchive::replace(std::int64_t index, const BodyBundle& bundle) {
  const std::string path = file_of(folder_, index);
  RETURN_IF_ERROR(make_folders(path, folder_.rfind('/')));
  return write_file_durably(path, encode_bodies(bundle));
}

Status BodyArchive::erase(const std::vector<std::int64_t>& seqs) {
  const std::lock_guard lock(moving_);
  for (std::size_t i = 0; i < seqs.size();) {
    const std::int64_t index = seqs[i] / tile_width;
    std::optional<BodyBundle> bundle;
    if (has(index)) {
      ASSIGN_OR_RETURN(bundle, read(index));
    }
    bool changed = false;
    for (; i < seqs.size() && seqs[i] / tile_width == index; ++i) {
      if (!bundle) continue;
      auto& body = (*bundle)[static_cast<std::size_t>(seqs[i] % tile_width)];
      changed = changed || body.has_value();
      body.reset();
    }
    if (changed) RETURN_IF_ERROR(replace(index, *bundle));
  }
  return success();
}

}  // namespace muniment::store
