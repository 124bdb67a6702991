// bundle.read, bundle.nodes and bundle.close: the content of a run bundle of `muniment audit export` (docs/format.md,
// Run bundles). The daemon keeps no state for an export: each request names the position of its page.
#include <fmt/format.h>

#include "audit/bundle_rows.hpp"
#include "audit/publisher.hpp"
#include "base/limits.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

// The lines of a page are sent as raw bytes. Rows have up to 60 KiB, so a few of them fill a page. Rows of artifacts
// are small and are sorted again for each page.
constexpr std::size_t page_rows_max = 256;
constexpr std::size_t page_artifacts_max = 4'096;

struct BundlePage {
  std::string lines;
  std::size_t rows = 0;
  std::optional<std::int64_t> next_seq;  // nullopt: the part ends here
};

std::int64_t row_seq(const events::Event& event) { return event.seq; }
std::int64_t row_seq(const store::SnapshotRow& row) { return row.event_seq; }
template <typename Row>
std::int64_t row_seq(const Row& row) {
  return row.seq;
}

// Writes as many rows as fit a reply. The client requests further pages until one is empty.
template <typename Row>
Result<BundlePage> bundle_page(Result<std::vector<Row>> rows, std::int16_t log_no) {
  if (!rows) return std::move(rows).error();
  BundlePage page;
  std::string line;
  for (const Row& row : *rows) {
    line.clear();
    audit::append_bundle_line(line, log_no, row);
    if (page.rows > 0 && page.lines.size() + line.size() > limits::artifact_raw_reply_bytes_max) break;
    page.lines += line;
    page.next_seq = row_seq(row) + 1;
    ++page.rows;
  }
  return page;
}

Result<BundlePage> read_bundle_part(store::Reader& reader, const store::Run& run, std::string_view part,
                                    store::SeqSpan span) {
  const std::int16_t log_no = reader.log_no();
  if (part == "artifacts") return bundle_page(reader.artifacts_in(run.run_id, span, page_artifacts_max), log_no);
  if (part == "manifests") return bundle_page(reader.manifests_in(run.run_id, span, page_rows_max), log_no);
  if (part == "snapshots") return bundle_page(reader.snapshots_in(run.view().run_no, span, page_rows_max), log_no);
  if (part == "claims") return bundle_page(reader.claims_in(run.run_id, span, page_rows_max), log_no);
  if (part == "evidence") return bundle_page(reader.evidence_in(run.run_id, span, page_rows_max), log_no);
  store::EventFilter filter;
  filter.run_no = run.view().run_no;
  filter.from_seq = span.from;
  filter.to_seq = span.to - 1;
  return bundle_page(reader.events(filter, limits::page_items_max, limits::artifact_raw_reply_bytes_max), log_no);
}

}  // namespace

Result<Answer> bundle_read(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  const store::EarlierLog* const closed = earlier_log(call.services, found.run->closed_log);
  const std::int64_t size = closed != nullptr ? closed->size : call.services.tail.next_seq();
  const store::SeqSpan span{call.params["from_seq"].as_int().value_or(0), call.params["size"].as_int().value_or(0)};
  if (span.to > size)
    return Error(Errc::invalid_argument,
                 fmt::format("size: the log has {} events{}.", size, closed != nullptr ? "" : " so far"));
  ASSIGN_OR_RETURN(BundlePage page,
                   read_bundle_part(*found.reader, *found.run, call.params["part"].string_or(""), span));
  json::Writer out;
  out.begin_object().member("rows", page.rows);
  if (page.next_seq) out.member("next_seq", *page.next_seq);
  out.member("body_bytes", page.lines.size()).end_object();
  return Answer(Reply{std::move(out).text(), std::move(page.lines)});
}

Result<Answer> bundle_nodes(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const store::Reader* const reader, reader_named(call));
  const audit::Publisher& publisher = call.services.publisher;
  const Fd* tiles = &publisher.tiles();
  std::int64_t size = publisher.newest().checkpoint.size;
  if (reader != call.reader) {
    ASSIGN_OR_RETURN(const audit::ClosedTree::Proven* const closed, closed_tree(call, reader->log_no()));
    tiles = &closed->whole.tiles;
    size = closed->whole.published.checkpoint.size;
  }
  audit::TreeReader tree(*tiles, size);
  json::Writer out;
  out.begin_object().key("hashes").begin_array();
  for (const json::Value node : call.params["nodes"]) {
    const std::int64_t level = node["level"].as_int().value_or(-1);
    const std::int64_t index = node["index"].as_int().value_or(-1);
    // (index + 1) · 2^level must not exceed 2^63
    if (level < 0 || level > 62 || index < 0 || index >= size >> level) {
      return Error(Errc::invalid_argument,
                   fmt::format("nodes: ({}, {}) is not a whole subtree of the {} events that are published.", level,
                               index, size));
    }
    ASSIGN_OR_RETURN(const Hash hash, tree.node(static_cast<int>(level), index));
    out.string(to_hex(hash));
  }
  out.end_array().end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

// Records a completed export in the log, with the user who made it.
Result<Answer> bundle_close(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  const std::shared_ptr<store::Run>& run = found.run;
  ASSIGN_OR_RETURN(const auto log_run, load_run(call, log_run_id));
  if (!log_run) return Error(Errc::system_error, "the daemon's own run _log is not known");
  json::Writer body;
  body.begin_object().member("format", "muniment-bundle");
  if (run->closed_log != 0) body.member("log_no", int{run->closed_log});
  body.member("from_seq", call.params["from_seq"].as_int().value_or(0));
  body.member("to_seq", call.params["to_seq"].as_int().value_or(0));
  body.key("runs").begin_array().string(run->run_id).end_array();
  body.member("by", call.caller.actor).end_object();
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back({log_run, make_event(call, *log_run, "log.exported", std::move(body).text()), false});
  append.finish = [](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    json::Writer out;
    out.begin_object().member("seq", receipts.front().seq).end_object();
    return Reply{std::move(out).text(), {}};
  };
  return Answer(std::move(append));
}

}  // namespace muniment::gateway::methods
