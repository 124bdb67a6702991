// Finds revocations in newer logs that affect older ones. A closed log accepts no source.revoked, so its own tables
// lack later revocations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::store {

class Reader;

struct Revocation {
  std::int16_t log_no = 0;
  std::int64_t seq = 0;
  std::string source;
  std::string owner;  // owner of the affected documents; empty: all owners
};

// The known revocations of one log, by seq.
struct KnownRevocations {
  std::int64_t next_seq = 0;  // all revocations before this seq are known
  std::map<std::int64_t, Revocation> by_seq;
};

// Finds a revocation in a log newer than `log_no`, among the logs of `readers`, that names one of these sources and
// applies to documents of this owner; nullopt: none. If `owner` is empty, only revocations for all owners count.
// Errors: unavailable; corrupt.
Result<std::optional<Revocation>> find_revocation(const std::vector<Reader*>& readers, std::int16_t log_no,
                                                  const std::vector<std::string>& sources, std::string_view owner);

// Finds a revocation of this source in any of these logs, made by this owner, or by any owner if none is named;
// nullopt: none.
Result<std::optional<Revocation>> find_revocation_by(const std::vector<Reader*>& readers, const std::string& source,
                                                     const std::optional<std::string>& owner);

}  // namespace muniment::store
