// What newer logs revoked of older ones: a closed log takes no source.revoked, so its own tables do not know of those
// that came after it.
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
  std::string owner;  // whose documents alone; empty: everybody's
};

// Those of one log, by seq, as far as they are known.
struct KnownRevocations {
  std::int64_t next_seq = 0;  // none is missing before it
  std::map<std::int64_t, Revocation> by_seq;
};

// A revocation in a log newer than `log_no`, of those that `readers` read, of any of these sources, for documents of
// this owner; nullopt: there is none. `owner` empty: only what was revoked for everybody counts. Errors: unavailable;
// corrupt.
Result<std::optional<Revocation>> find_revocation(const std::vector<Reader*>& readers, std::int16_t log_no,
                                                  const std::vector<std::string>& sources, std::string_view owner);

// One of this source in any of these logs, which this owner made, or anybody where nobody is named; nullopt: there is
// none.
Result<std::optional<Revocation>> find_revocation_by(const std::vector<Reader*>& readers, const std::string& source,
                                                     const std::optional<std::string>& owner);

}  // namespace muniment::store
