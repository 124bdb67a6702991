// Uploads an artifact from a file, a descriptor or memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

struct Upload {
  std::string run_id;
  std::string step_id;        // empty: main
  std::string mime_type;      // empty: application/octet-stream
  std::string metadata;       // JSON object text, or empty
  std::string occurred_at{};  // time in the source, for an imported run; otherwise empty
};

// Both overloads return the result of artifact.put: {artifact_id, path, hash, size_bytes, seq}.
Result<Message> put_bytes(Client& client, const Upload& upload, std::string_view bytes);
// Sends a file in constant memory. Errors: invalid_argument if the file cannot be read or shrinks during the upload.
Result<Message> put_file(Client& client, const Upload& upload, const std::string& path);
// Sends a pipe. Copies it to a temporary file first, because its length is unknown before its end.
Result<Message> put_descriptor(Client& client, const Upload& upload, int descriptor);
// Sends an open file from its start to its current size.
Result<Message> put_open_file(Client& client, const Upload& upload, int descriptor);

// Sends `size` bytes from `next`, piece by piece.
Result<Message> put_stream(Client& client, const Upload& upload, std::int64_t size, const BodySource& next);

// Creates an unnamed file that is removed when its descriptor closes. Errors: unavailable.
Result<Fd> temporary_file();
// Sets their folder, in place of TMPDIR or /tmp.
void keep_temporary_files_in(const char* folder);

// Derives the MIME type from the extension; text/plain or application/octet-stream if it is unknown.
std::string mime_type_of(std::string_view path);

}  // namespace muniment::cli
