// Counts requests and writes them as metrics.
#include "gateway/request/request_counts.hpp"

#include "gateway/method_table.hpp"

namespace muniment::gateway {
namespace {

std::string labels_of(std::string_view method, std::string_view code) {
  return metrics::label("method", method) + "," + metrics::label("code", code);
}

void write_failures(metrics::Text& text, std::string_view method,
                    const std::array<metrics::Counter, RequestCounts::codes>& failed) {
  for (std::size_t code = 0; code < failed.size(); ++code) {
    if (const std::int64_t count = failed[code].value())
      text.sample(count, labels_of(method, name_of(static_cast<Errc>(code))));
  }
}

}  // namespace

RequestCounts::RequestCounts() : rows_(std::make_unique<Row[]>(method_table().size())) {}

RequestCounts::Row& RequestCounts::row_of(const MethodInfo& method) {
  return rows_[static_cast<std::size_t>(&method - method_table().data())];
}

void RequestCounts::note(const MethodInfo& method, std::optional<Errc> code, std::chrono::steady_clock::duration took) {
  Row& row = row_of(method);
  code ? row.failed[static_cast<std::size_t>(*code)].add() : row.good.add();
  row.seconds.record(took);
}

void RequestCounts::note_gone(const MethodInfo& method) { row_of(method).gone.add(); }

void RequestCounts::note_malformed(Errc code) { malformed_[static_cast<std::size_t>(code)].add(); }

void RequestCounts::write(metrics::Text& text) const {
  const auto methods = method_table();
  text.family("requests_total", metrics::Type::counter,
              "Answered requests, by method and code; code gone: the client disconnected.");
  for (std::size_t i = 0; i < methods.size(); ++i) {
    text.sample(rows_[i].good.value(), labels_of(methods[i].name, "ok"));
    write_failures(text, methods[i].name, rows_[i].failed);
    if (const std::int64_t gone = rows_[i].gone.value()) text.sample(gone, labels_of(methods[i].name, "gone"));
  }
  text.family("lines_refused_total", metrics::Type::counter, "Lines that are not a valid request, by code.");
  text.sample(malformed_[0].value(), metrics::label("code", name_of(Errc::invalid_argument)));
  for (std::size_t code = 1; code < codes; ++code) {
    if (const std::int64_t count = malformed_[code].value())
      text.sample(count, metrics::label("code", name_of(static_cast<Errc>(code))));
  }
  text.family("request_seconds", metrics::Type::histogram, "Time from a request's line to its answer, by method.");
  for (std::size_t i = 0; i < methods.size(); ++i) {
    if (rows_[i].seconds.seen().count > 0)
      text.histogram(rows_[i].seconds, 1'000'000, metrics::label("method", methods[i].name));
  }
}

}  // namespace muniment::gateway
