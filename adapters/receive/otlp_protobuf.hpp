// Converts OTLP requests in protobuf (opentelemetry-proto 1.x) to OTLP/JSON, which is all that the importer reads, and
// writes the replies. Only otlp_protobuf.cpp uses protobuf. Unknown fields are skipped, as protobuf prescribes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::cli {

enum class OtlpSignal : std::uint8_t { traces, logs };

// Returns an ExportTraceServiceRequest or ExportLogsServiceRequest as JSON: ids in hexadecimal, 64-bit numbers as text,
// bytes in base64. The text may hold \u0000, which JSON of the importer does not allow as it is. Errors:
// invalid_argument for bytes that are not such a message; too_large for text over `bytes_max`.
Result<std::string> otlp_json_of(OtlpSignal signal, std::string_view protobuf, std::size_t bytes_max);

// Items of an accepted request that the receiver did not record.
struct OtlpRefused {
  std::uint64_t items = 0;
  std::string why;
};
// Export…ServiceResponse and google.rpc.Status.
std::string otlp_response_protobuf(const OtlpRefused& refused);
std::string otlp_status_protobuf(int code, std::string_view message);

}  // namespace muniment::cli
