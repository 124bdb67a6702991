// Reads and verifies the passages of candidates.
#include "retrieval/query/passages.hpp"

#include <algorithm>
#include <vector>

#include "base/metrics.hpp"
#include "retrieval/query/card.hpp"

namespace muniment::retrieval {

bool has_expired(const store::DocumentRow& row, const QueryPlan& plan) {
  return row.expires_at && !plan.as_of && *row.expires_at <= Clock().now();
}

bool Passages::belongs(const store::ChunkInDocument& item) const {
  const store::DocumentRow& row = item.document;
  if (row.removed_at || !std::ranges::binary_search(plan_.corpora, row.corpus)) return false;
  if (row.of_run() && !plan_.owner.empty() && row.owner != plan_.owner) return false;
  if (!plan_.as_of) return row.current();
  return row.seq <= *plan_.as_of && (!row.valid_to || *row.valid_to > *plan_.as_of);
}

Result<std::unordered_map<ChunkId, store::ChunkRows::Row>> Passages::find(std::span<const ChunkId> chunks) const {
  const std::vector<std::int64_t> ids(chunks.begin(), chunks.end());
  ASSIGN_OR_RETURN(auto rows, rows_.read(reader_, ids));
  std::unordered_map<ChunkId, store::ChunkRows::Row> out;
  for (auto& [id, row] : rows) {
    if (belongs(*row)) out.emplace(static_cast<ChunkId>(id), std::move(row));
  }
  return out;
}

Result<std::optional<std::string>> Passages::text_of(const store::ChunkInDocument& item) const {
  const metrics::Timer timer(metrics::process().passage_seconds);
  auto text = read_passage(item, files_);
  if (!text && text.error().code != Errc::unavailable)
    text = read_passage(item, files_);  // the file may have been written at that moment
  if (text) return std::optional(*std::move(text));
  if (text.error().code == Errc::unavailable) return std::move(text).error();
  return std::optional<std::string>();
}

}  // namespace muniment::retrieval
