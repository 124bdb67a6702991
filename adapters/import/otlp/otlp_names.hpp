// Names of other conventions for the attributes of the GenAI semantic conventions: OpenInference (Arize), OpenLLMetry
// (Traceloop), the AI SDK of Vercel, and older versions of the GenAI conventions. The tables of otlp_names.cpp are the
// only place that knows them; otlp_conventional.hpp rewrites a span with them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/import/otlp/otlp_value.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

enum class OtlpKind : std::uint8_t { other, model, tool, agent, log };

inline constexpr std::string_view otlp_details_event = "gen_ai.client.inference.operation.details";
inline constexpr std::string_view otlp_input_messages = "gen_ai.input.messages";
inline constexpr std::string_view otlp_output_messages = "gen_ai.output.messages";

// A name and the attribute of the GenAI conventions that it means. If a span has several names of one attribute, the
// one with the smallest rank counts.
struct OtlpMeaning {
  std::string_view attribute;  // empty: none
  std::size_t rank = 0;
};
// A span of kind `other` keeps its names.
OtlpMeaning otlp_meaning(std::string_view name, OtlpKind kind);

// A list whose items are spread over attributes: "llm.input_messages.0.message.role".
struct OtlpSpread {
  std::string_view attribute;  // empty: the name is not of a list
  std::string_view path;       // the rest of the name, beginning with an index
  std::size_t rank = 0;
};
OtlpSpread otlp_spread(std::string_view name);

// Returns gen_ai.operation.name, or the operation that an attribute of another convention means. A span without either
// that names a tool and no model executes the tool. Empty: none.
std::string otlp_operation(const OtlpAttributes& attributes);
// Kind of a span, also of one whose only content is the event of an inference's details.
OtlpKind otlp_kind(const json::Value& span);
bool otlp_is_details_log(const json::Value& record);

// Returns the text that any span may have as its input, its kind notwithstanding. Empty: none.
std::string otlp_input_text(const OtlpAttributes& attributes);
// Returns whether the span has an input or an output, in any convention.
bool otlp_has_text(const OtlpAttributes& attributes);

}  // namespace muniment::cli
