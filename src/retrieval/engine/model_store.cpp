// Reads and writes the files of models.
#include "retrieval/engine/model_store.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"

namespace muniment::retrieval {

namespace {

constexpr std::string_view current_ending = ".model", waiting_ending = ".next";

// A file holds the hash of the rest, the length of the corpus' name, the name, and the model.
std::string file_of(std::string_view corpus, std::string_view bytes) {
  std::string rest = std::to_string(corpus.size()) + "\n";
  rest.append(corpus).append(bytes);
  return to_hex(sha256(rest)) + "\n" + rest;
}

std::optional<StoredModel> model_in(std::string_view file) {
  const std::size_t hash_end = file.find('\n');
  if (hash_end == std::string_view::npos) return std::nullopt;
  const std::string_view rest = file.substr(hash_end + 1);
  if (to_hex(sha256(rest)) != file.substr(0, hash_end)) return std::nullopt;
  const std::size_t size_end = rest.find('\n');
  if (size_end == std::string_view::npos) return std::nullopt;
  // The hash proves that this program wrote it.
  const std::size_t size = std::stoul(std::string(rest.substr(0, size_end)));
  return StoredModel{std::string(rest.substr(size_end + 1, size)), std::string(rest.substr(size_end + 1 + size)),
                     false};
}

}  // namespace

std::string ModelStore::path(std::string_view corpus, bool waiting) const {
  return folder_ + "/" + to_hex(sha256(corpus)).substr(0, 32) + std::string(waiting ? waiting_ending : current_ending);
}

Result<std::vector<StoredModel>> ModelStore::load() const {
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  std::vector<StoredModel> models;
  for (std::filesystem::directory_iterator entry(folder_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string file = entry->path().string();
    const bool waiting = file.ends_with(waiting_ending);
    if (!waiting && !file.ends_with(current_ending)) continue;  // an incomplete write
    ASSIGN_OR_RETURN(const std::string content, read_file(file, limits::search_request_bytes_max * 2));
    auto model = model_in(content);
    if (!model || path(model->corpus, waiting) != file) {
      ::unlink(file.c_str());
      continue;
    }
    model->waiting = waiting;
    models.push_back(*std::move(model));
  }
  if (failed) return Error(Errc::unavailable, "reading " + folder_ + ": " + failed.message());
  return models;
}

Status ModelStore::put_waiting(std::string_view corpus, std::string_view bytes) const {
  return write_file_durably(path(corpus, true), file_of(corpus, bytes));
}

Status ModelStore::promote(std::string_view corpus) const {
  const std::string from = path(corpus, true), to = path(corpus, false);
  if (::rename(from.c_str(), to.c_str()) != 0) return file_error("renaming", from, errno);
  ASSIGN_OR_RETURN(const Fd folder, open_folder(folder_));
  if (::fsync(folder.get()) != 0) return file_error("syncing", folder_, errno);
  return success();
}

}  // namespace muniment::retrieval
