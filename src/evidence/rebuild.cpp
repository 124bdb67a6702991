#include "evidence/rebuild.hpp"

#include <algorithm>

#include "evidence/pointer_follower.hpp"

namespace muniment::evidence {
namespace {

constexpr std::int16_t rebuilt_log_no = 1;
// The runs first: the others take the runs' names from them where an event is erased.
const std::vector<std::string> all_tables = {"run", "pointer", "claim", "evidence", "evidence_link", "artifact", "corpus", "document", "chunk", "feedback"};

}  // namespace

bool RebuildReport::equal() const {
  return std::ranges::all_of(tables, [](const store::RebuiltTable& table) { return table.equal(); });
}

Result<RebuildReport> rebuild(const std::string& uri, std::int64_t size, const std::vector<std::string>& tables,
                              const store::CorpusChangeOf& change_of) {
  store::Rebuild work(uri, rebuilt_log_no);
  RETURN_IF_ERROR(work.collect(size));
  RebuildReport report;
  report.upto = size - 1;
  std::vector<std::string> of_corpora;
  for (const std::string& name : tables.empty() ? all_tables : tables) {
    if (std::ranges::find(store::corpus_tables, name) != store::corpus_tables.end()) {
      of_corpora.push_back(name);
      continue;
    }
    ASSIGN_OR_RETURN(store::RebuiltTable table, name == "pointer" ? work.rebuild_pointers([](const events::Event& event, std::string_view manifest) { return pointers_of(event, manifest); }) : work.rebuild(name));
    report.tables.push_back(std::move(table));
  }
  if (of_corpora.empty()) return report;
  ASSIGN_OR_RETURN(auto rebuilt, work.rebuild_corpora(of_corpora, change_of));
  for (store::RebuiltTable& table : rebuilt) report.tables.push_back(std::move(table));
  return report;
}

}  // namespace muniment::evidence
