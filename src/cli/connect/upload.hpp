// Sending bytes to be kept as an artifact: a file, a descriptor, or what is in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"
#include "cli/connect/client.hpp"

namespace muniment::cli {

struct Upload {
  std::string run_id;
  std::string step_id;        // empty: main
  std::string mime_type;      // empty: application/octet-stream
  std::string metadata;       // JSON object text, or empty
  std::string occurred_at{};  // of an imported run: when its source had it; or empty
};

// All three answer what artifact.put does: {artifact_id, path, hash, size_bytes, seq}.
Result<Message> put_bytes(Client& client, const Upload& upload, std::string_view bytes);
// In constant memory. Errors: invalid_argument when the file cannot be read, or shrinks meanwhile.
Result<Message> put_file(Client& client, const Upload& upload, const std::string& path);
// A pipe's length is not known before its end, so that it goes through a temporary file first.
Result<Message> put_descriptor(Client& client, const Upload& upload, int descriptor);
// An open file, from its start to its present size.
Result<Message> put_open_file(Client& client, const Upload& upload, int descriptor);

// `size` bytes that `next` gives, piece by piece.
Result<Message> put_stream(Client& client, const Upload& upload, std::int64_t size, const BodySource& next);

// An unnamed file that goes with its descriptor. Errors: unavailable.
Result<Fd> temporary_file();

// From the name's extension; text/plain and application/octet-stream where it says nothing.
std::string mime_type_of(std::string_view path);

}  // namespace muniment::cli
