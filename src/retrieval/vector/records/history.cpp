// Reads the closed vectors of a space.
#include "retrieval/vector/records/history.hpp"

#include <limits>

#include "retrieval/vector/records/records.hpp"

namespace muniment::retrieval::vec {
namespace {

Error damaged(const std::string& name) {
  return Error(Errc::corrupt, "the history of the vector space " + name + " is damaged");
}

}  // namespace

Status search_history(const RecordStore& store, const RecordStore::Moment& at, const Space& space, const Probe& probe,
                      const CompiledFilter& filter, BestChunks& best) {
  if (*filter.as_of() == std::numeric_limits<std::int64_t>::max()) return success();
  const std::uint32_t number = space.number();
  const auto visit = [&](std::string_view key, std::string_view value) -> Status {
    const auto id = parse_history_key(key);
    const auto record = decode_vector(value, space.padded());
    if (!id || !record || record->chunk != id->chunk) return damaged(space.name());
    if (record->scale == 0 || !filter.passes_closed(*record, id->valid_to)) return success();
    best.add(
        static_cast<float>(space.dot().probe(probe.values.data(), record->code.data(), space.padded())) * record->scale,
        id->chunk);
    return success();
  };
  const auto last = static_cast<char>(static_cast<int>(RecordKind::history) + 1);
  return store.scan(history_key(number, *filter.as_of() + 1, 0), kind_key(number, static_cast<RecordKind>(last)), visit,
                    &at);
}

Status check_history(const RecordStore& store, const RecordStore::Moment* at, Space& space) {
  if (space.history_checked) return success();
  const std::uint32_t number = space.number();
  ASSIGN_OR_RETURN(const auto stored, store.get(header_key(number), at));
  const auto header = stored ? decode_space_header(*stored, number) : std::nullopt;
  if (!header) return damaged(space.name());
  std::uint64_t closed = 0, digest = 0;
  const auto sum = [&](std::string_view key, std::string_view value) -> Status {
    if (parse_history_key(key)) ++closed;
    digest += record_hash(key, value);
    return success();
  };
  for (const RecordKind kind : {RecordKind::closed_at, RecordKind::history}) {
    const auto next = static_cast<RecordKind>(static_cast<char>(static_cast<int>(kind) + 1));
    RETURN_IF_ERROR(store.scan(kind_key(number, kind), kind_key(number, next), sum, at));
  }
  if (closed != header->closed || digest != header->closed_digest) return damaged(space.name());
  space.history_checked = true;
  return success();
}

}  // namespace muniment::retrieval::vec
