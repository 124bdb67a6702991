// Rebuilds the derived tables from the log: compares both ways with the existing rows and corrects differences. It
// works in spans with pauses, so that appends continue.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "store/append/rows.hpp"
#include "store/logs/log_place.hpp"
#include "store/read/connection.hpp"
#include "store/tables/follower.hpp"

namespace muniment::store {

struct RebuiltTable {
  std::string name;
  std::int64_t rows = 0;        // number of rows derived from the log
  std::int64_t missing = 0;     // rows that the table lacked or held with other values
  std::int64_t unexpected = 0;  // rows that the log does not imply
  bool replaced = false;
  bool equal() const { return missing == 0 && unexpected == 0; }
};

// Returns the pointers on which something depends because of an event, given the text of its manifest, if any.
using PointersOf = std::function<std::vector<PointerRow>(const events::Event&, std::string_view manifest)>;

// Returns the effect of an event on documents; nullopt: none.
using CorpusChangeOf = std::function<Result<std::optional<CorpusChange>>(const events::Event&)>;

// The tables derived from the same events, which are rebuilt together.
inline constexpr std::array<std::string_view, 4> corpus_tables = {"corpus", "document", "chunk", "feedback"};

// All functions return conflict if something was erased since the events were collected. No affected row is written
// then; start again with a new object.
class Rebuild {
 public:
  struct Table;  // rebuild_tables.hpp

  explicit Rebuild(const LogPlace& place)
      : connection_(place.uri, DatabaseRole::writer, place.connections), log_no_(place.log_no) {}

  // Collects the events before `upto` from which rows are derived. Call it first.
  Status collect(std::int64_t upto);

  // `table` is run, claim, evidence, task_change, task_evidence, or artifact, which is only compared. Tables of a
  // follower are rebuilt up to its position.
  Result<RebuiltTable> rebuild(std::string_view table);
  Result<RebuiltTable> rebuild_pointers(const PointersOf& pointers_of);
  // Rebuilds the named tables among corpus_tables.
  Result<std::vector<RebuiltTable>> rebuild_corpora(const std::vector<std::string>& tables,
                                                    const CorpusChangeOf& change_of);

 private:
  static const Table& table_named(std::string_view name);

  Status collect_span(std::int64_t from, std::int64_t end);
  struct Work;  // one transaction; throws

  Connection connection_;
  const std::int16_t log_no_;
  std::int64_t collected_ = 0;
};

}  // namespace muniment::store
