// Rebuilds derived tables, and repeats the rebuild if an erasure intervenes.
#include "evidence/rebuild.hpp"

#include <algorithm>
#include <iterator>

#include "evidence/pointer_follower.hpp"
#include "store/tables/rebuild_report.hpp"

namespace muniment::evidence {
namespace {

// The table of runs is first: the other tables read the names of runs from it for erased events.
const std::vector<std::string> all_tables = {
    "run",    "pointer",  "claim", "evidence", "evidence_link", "task_change", "task_evidence", "artifact",
    "corpus", "document", "chunk", "feedback", "report_run",    "report_span", "report_place"};

constexpr int rebuilds_max = 3;  // an erasure during a rebuild requires a repetition without the erased data

}  // namespace

bool RebuildReport::equal() const {
  return std::ranges::all_of(tables, [](const store::RebuiltTable& table) { return table.equal(); });
}

namespace {

Result<RebuildReport> rebuild_once(const store::LogPlace& place, std::int64_t size,
                                   const std::vector<std::string>& tables, const store::CorpusChangeOf& change_of) {
  store::Rebuild work(place);
  RETURN_IF_ERROR(work.collect(size));
  RebuildReport report;
  report.upto = size - 1;
  std::vector<std::string> of_corpora;
  std::vector<std::string> of_reports;
  for (const std::string& name : tables.empty() ? all_tables : tables) {
    if (std::ranges::find(store::corpus_tables, name) != store::corpus_tables.end()) {
      of_corpora.push_back(name);
      continue;
    }
    if (std::ranges::find(store::report_tables, name) != store::report_tables.end()) {
      of_reports.push_back(name);
      continue;
    }
    ASSIGN_OR_RETURN(store::RebuiltTable table,
                     name == "pointer"
                         ? work.rebuild_pointers([](const events::Event& event, std::string_view manifest) {
                             return pointers_of(event, manifest);
                           })
                         : work.rebuild(name));
    report.tables.push_back(std::move(table));
  }
  if (!of_corpora.empty()) {
    ASSIGN_OR_RETURN(auto rebuilt, work.rebuild_corpora(of_corpora, change_of));
    std::ranges::move(rebuilt, std::back_inserter(report.tables));
  }
  if (!of_reports.empty()) {
    ASSIGN_OR_RETURN(auto rebuilt, store::rebuild_report(place, of_reports));
    std::ranges::move(rebuilt, std::back_inserter(report.tables));
  }
  return report;
}

}  // namespace

Result<RebuildReport> rebuild(const store::LogPlace& place, std::int64_t size, const std::vector<std::string>& tables,
                              const store::CorpusChangeOf& change_of) {
  for (int attempt = 1;; ++attempt) {
    auto report = rebuild_once(place, size, tables, change_of);
    if (report || report.error().code != Errc::conflict) return report;
    if (attempt == rebuilds_max)
      return Error(Errc::unavailable, report.error().message + ", in three attempts. Retry the rebuild.");
  }
}

}  // namespace muniment::evidence
