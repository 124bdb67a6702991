// Limits of the receiver of OTLP/HTTP (docs/opentelemetry.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace muniment::cli {

inline constexpr std::size_t otlp_body_bytes_max = 20 << 20;     // of a request, as it is sent
inline constexpr std::size_t otlp_request_bytes_max = 32 << 20;  // of a request, decompressed and as JSON
inline constexpr std::size_t otlp_open_traces_max = 1'000;       // that wait for their end
inline constexpr std::size_t otlp_trace_spans_max = 100'000;     // of a trace, with its log records
inline constexpr std::size_t otlp_trace_bytes_max = 1U << 30;    // of a trace's file
inline constexpr std::size_t otlp_known_spans_max = 1'000'000;   // whose repetition is recognized, in all traces
inline constexpr std::int64_t otlp_known_seconds = 3'600;        // for which a recorded trace's spans are known
inline constexpr std::int64_t otlp_quiet_seconds = 5;            // after the end of a trace's root
inline constexpr std::int64_t otlp_unended_seconds = 600;  // without spans, for a trace without the end of its root

}  // namespace muniment::cli
