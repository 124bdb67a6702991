// Compares the outputs of a workflow's tester with the golden files, byte for byte: equal hashes decide, and the first
// differing byte is searched only for people. Pure: the caller reads the bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/result.hpp"

namespace muniment::evidence::workflow {

// Stored bytes, as the log describes them.
struct Stored {
  std::string artifact_id;
  Hash hash{};
  std::int64_t size_bytes = 0;
};

struct Compared {
  std::string name;  // path of the golden file
  Stored golden;
  std::optional<Stored> output;                  // nullopt: the tester did not write it
  std::optional<std::int64_t> first_difference;  // offset of the first differing byte; nullopt: equal, or not searched
  bool empty = false;                            // the golden file contains only white space
  bool told = false;                             // it is also a file of the specification, which the coder reads

  bool equal() const { return output && output->hash == golden.hash && output->size_bytes == golden.size_bytes; }
};

// Returns up to `length` bytes from `offset`, fewer only at the end.
using ReadBytes = std::function<Result<std::string>(std::int64_t offset, std::int64_t length)>;

inline constexpr std::int64_t empty_bytes_max = 64 << 10;  // a larger golden file counts as not empty
inline constexpr std::int64_t searched_bytes_max = 64 << 20;

// Returns the offset of the first byte that differs, or the shorter size if one is the beginning of the other; nullopt
// if the first searched_bytes_max bytes are equal. Errors: those of the readers.
Result<std::optional<std::int64_t>> first_difference(const ReadBytes& one, const ReadBytes& other);

// Describes one pair: "greeting.txt: equal, 12 bytes, sha256:…" or "greeting.txt: differs at byte 4 (12 and 13 bytes)".
// Contains no byte of either file.
std::string describe(const Compared& pair);

// "2 of 3 outputs equal their golden files" and one line for each pair.
std::string describe(const std::vector<Compared>& pairs);

}  // namespace muniment::evidence::workflow
