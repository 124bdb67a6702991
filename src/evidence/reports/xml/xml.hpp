// Reads XML with expat: elements with their attributes, in document order. Text between the tags is ignored. Document
// type declarations, and with them entities, are rejected.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace muniment::evidence::reports {

inline constexpr std::size_t xml_depth_max = 64;
inline constexpr std::size_t xml_attributes_max = 256;  // attributes of one element

// Beginning of the message of read_xml for a text that ends before the XML does.
inline constexpr std::string_view truncated_xml = "the XML is truncated";

struct XmlElement {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> attributes;

  std::optional<std::string_view> attribute(std::string_view name) const;
};

// Views are valid during the call. `depth` is 1 for the root.
struct XmlReader {
  std::function<void(const XmlElement& element, std::size_t depth)> open;
  std::function<void(std::string_view name, std::size_t depth)> close;
};

// Parses the text, in the encoding that it declares, after clean_xml. Errors: invalid_argument with line and reason;
// the reader has already received the elements before the error.
Status read_xml(std::string_view text, const XmlReader& reader);

// Returns the first tag of the text without its brackets ("testsuites tests="1" …"), after the declaration and
// comments; empty if there is none.
std::string_view root_tag(std::string_view text);

}  // namespace muniment::evidence::reports
