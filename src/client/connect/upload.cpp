#include "client/connect/upload.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/limits.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t upload_piece_bytes = 256 * 1024;
// A large upload gets the longest deadline that the daemon allows.
constexpr std::int64_t large_bytes = 16 << 20;

std::string put_params(const Upload& upload, std::int64_t size) {
  json::Writer params;
  params.begin_object().member("run_id", upload.run_id);
  if (!upload.step_id.empty()) params.member("step_id", upload.step_id);
  if (!upload.mime_type.empty()) params.member("mime_type", upload.mime_type);
  if (!upload.metadata.empty()) params.raw_member("metadata", upload.metadata);
  params.key("_meta").begin_object();
  if (size > large_bytes) params.member("deadline_ms", limits::deadline_ms_max);
  if (!upload.occurred_at.empty()) params.member("occurred_at", upload.occurred_at);
  params.end_object();
  params.member("body_bytes", size).end_object();
  return std::move(params).text();
}

Error cannot(std::string_view what) {
  return Error(Errc::invalid_argument, fmt::format("{}: {}", what, std::strerror(errno)));
}

const char* folder_of_temporary_files = nullptr;

}  // namespace

Result<Message> put_bytes(Client& client, const Upload& upload, std::string_view bytes) {
  return client.call("artifact.put", put_params(upload, static_cast<std::int64_t>(bytes.size())), bytes);
}

Result<Message> put_open_file(Client& client, const Upload& upload, int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return cannot("cannot read the file's size");
  std::int64_t offset = 0;
  std::vector<char> piece(upload_piece_bytes);
  const auto next = [&]() -> Result<std::string_view> {
    const auto wanted = static_cast<std::size_t>(
        std::min<std::int64_t>(status.st_size - offset, static_cast<std::int64_t>(piece.size())));
    if (wanted == 0) return std::string_view();
    const ssize_t got = ::pread(descriptor, piece.data(), wanted, offset);
    if (got < 0) return cannot("cannot read the file");
    if (got == 0) return Error(Errc::invalid_argument, "the file shrank during the upload. Retry");
    offset += got;
    return std::string_view(piece.data(), static_cast<std::size_t>(got));
  };
  return put_stream(client, upload, status.st_size, next);
}

Result<Message> put_stream(Client& client, const Upload& upload, std::int64_t size, const BodySource& next) {
  if (size > large_bytes) client.set_patience(std::chrono::milliseconds(limits::deadline_ms_max));
  return client.call("artifact.put", put_params(upload, size), next);
}

Result<Message> put_file(Client& client, const Upload& upload, const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return cannot("cannot open " + path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return cannot("cannot read " + path);
  if (S_ISDIR(status.st_mode)) return Error(Errc::invalid_argument, path + " is a folder; an artifact is one file");
  if (!S_ISREG(status.st_mode)) return put_descriptor(client, upload, file.get());
  return put_open_file(client, upload, file.get());
}

Result<Message> put_descriptor(Client& client, const Upload& upload, int descriptor) {
  ASSIGN_OR_RETURN(const Fd copy, temporary_file());
  std::vector<char> piece(upload_piece_bytes);
  for (;;) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("cannot read the input");
    if (got == 0) return put_open_file(client, upload, copy.get());
    RETURN_IF_ERROR(write_all(copy.get(), {piece.data(), static_cast<std::size_t>(got)}, "a temporary file"));
  }
}

void keep_temporary_files_in(const char* folder) { folder_of_temporary_files = folder; }

Result<Fd> temporary_file() {
  const char* chosen = folder_of_temporary_files != nullptr ? folder_of_temporary_files : std::getenv("TMPDIR");
  const char* folder = chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
  Fd file(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.open()) {
    return Error(Errc::unavailable,
                 fmt::format("cannot create a temporary file in {}: {}", folder, std::strerror(errno)));
  }
  return file;
}

std::string mime_type_of(std::string_view path) {
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {".csv", "text/csv"},         {".diff", "text/x-diff"},      {".gif", "image/gif"},
      {".gz", "application/gzip"},  {".htm", "text/html"},         {".html", "text/html"},
      {".jpg", "image/jpeg"},       {".json", "application/json"}, {".jsonl", "application/x-ndjson"},
      {".log", "text/plain"},       {".md", "text/markdown"},      {".patch", "text/x-diff"},
      {".pdf", "application/pdf"},  {".png", "image/png"},         {".py", "text/x-python"},
      {".svg", "image/svg+xml"},    {".tar", "application/x-tar"}, {".txt", "text/plain"},
      {".webp", "image/webp"},      {".xml", "application/xml"},   {".yaml", "application/yaml"},
      {".yml", "application/yaml"}, {".zip", "application/zip"},
  };
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) {
    for (const auto& [extension, type] : known) {
      if (name.substr(dot) == extension) return std::string(type);
    }
  }
  return "application/octet-stream";
}

}  // namespace muniment::cli
