// How many requests there were, by method and by what became of them, and how long each method takes.
// The names are those of the method table, whatever a client asks for.
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
    metrics::Histogram seconds{metrics::coarse_time_bounds};  // of all that were answered
    metrics::Counter good;
    std::array<metrics::Counter, codes> failed;  // by Errc
    metrics::Counter gone;                       // the client did not wait for the answer
  };

  RequestCounts();

  // `code`: nullopt when it was done. From any thread.
  void note(const MethodInfo& method, std::optional<Errc> code, std::chrono::steady_clock::duration took);
  void note_gone(const MethodInfo& method);
  void note_malformed(Errc code);  // no request of any method

  // Requests by method and code, and their time by method; of methods that were never asked for, only that.
  void write(metrics::Text& text) const;

 private:
  Row& row_of(const MethodInfo& method);
  std::unique_ptr<Row[]> rows_;  // as in the method table
  std::array<metrics::Counter, codes> malformed_{};
};

}  // namespace muniment::gateway
