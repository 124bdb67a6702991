// Counts requests by method and result, and measures the time of each method. The labels are the names of the method
// table, whatever names a client sends.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "base/metrics.hpp"
#include "base/result.hpp"
#include "gateway/call.hpp"

namespace muniment::gateway {

class RequestCounts {
 public:
  static constexpr std::size_t codes = static_cast<std::size_t>(Errc::system_error) + 1;

  struct Row {
    metrics::Histogram seconds{metrics::coarse_time_bounds};  // time of every answered request
    metrics::Counter good;
    std::array<metrics::Counter, codes> failed;  // by Errc
    metrics::Counter gone;                       // the client disconnected before the answer
  };

  RequestCounts();

  // Counts one request; `code` is nullopt if it succeeded. Any thread.
  void note(const MethodInfo& method, std::optional<Errc> code, std::chrono::steady_clock::duration took);
  void note_gone(const MethodInfo& method);
  void note_malformed(Errc code);  // a line that is not a valid request

  // Writes the requests by method and code, and their time by method; methods that were never called are omitted.
  void write(metrics::Text& text) const;

 private:
  Row& row_of(const MethodInfo& method);
  std::unique_ptr<Row[]> rows_;  // in the order of the method table
  std::array<metrics::Counter, codes> malformed_{};
};

}  // namespace muniment::gateway
