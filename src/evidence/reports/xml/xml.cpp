// Wraps expat with limits on depth, attributes and declarations.
#include "evidence/reports/xml/xml.hpp"

#include <expat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "evidence/reports/xml/characters.hpp"

namespace muniment::evidence::reports {
namespace {

constexpr std::size_t chunk_bytes = 1 << 20;  // expat takes an int

struct XmlState {
  const XmlReader& reader;
  XML_Parser parser;
  std::size_t depth = 0;
  const char* refusal = nullptr;  // the reason why a handler stopped the parser
};

void refuse(XmlState& state, const char* reason) {
  state.refusal = reason;
  XML_StopParser(state.parser, XML_FALSE);
}

void XMLCALL on_open(void* data, const XML_Char* name, const XML_Char** attributes) {
  XmlState& state = *static_cast<XmlState*>(data);
  if (state.refusal) return;
  if (++state.depth > xml_depth_max) return refuse(state, "the elements are nested deeper than 64 levels");
  XmlElement element{.name = name, .attributes = {}};
  for (std::size_t i = 0; attributes[i]; i += 2) {
    if (element.attributes.size() == xml_attributes_max)
      return refuse(state, "an element has more than 256 attributes");
    element.attributes.emplace_back(attributes[i], attributes[i + 1]);
  }
  state.reader.open(element, state.depth);
}

void XMLCALL on_close(void* data, const XML_Char* name) {
  XmlState& state = *static_cast<XmlState*>(data);
  if (state.refusal) return;
  state.reader.close(name, state.depth);
  --state.depth;
}

void XMLCALL on_doctype(void* data, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  refuse(*static_cast<XmlState*>(data), "document type declarations are not accepted");
}

// Returns whether the text ended within an element, a tag or a character.
bool is_cut(const XmlState& state) {
  const XML_Error code = XML_GetErrorCode(state.parser);
  return state.refusal == nullptr && (code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN ||
                                      code == XML_ERROR_PARTIAL_CHAR || code == XML_ERROR_UNCLOSED_CDATA_SECTION);
}

Error failure_of(const XmlState& state) {
  const char* const reason = state.refusal ? state.refusal : XML_ErrorString(XML_GetErrorCode(state.parser));
  const std::string_view what = is_cut(state) ? truncated_xml : "the XML is damaged";
  return {Errc::invalid_argument,
          std::string(what) + " at line " + std::to_string(XML_GetCurrentLineNumber(state.parser)) + ": " + reason};
}

}  // namespace

std::optional<std::string_view> XmlElement::attribute(std::string_view wanted) const {
  for (const auto& [attribute_name, value] : attributes)
    if (attribute_name == wanted) return value;
  return std::nullopt;
}

Status read_xml(std::string_view document, const XmlReader& reader) {
  ASSIGN_OR_RETURN(const std::string clean, clean_xml(document));
  std::string_view text = clean;
  // The name replaces the declared encoding, from which the text was converted.
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, void (*)(XML_Parser)> parser(XML_ParserCreate("UTF-8"),
                                                                                        XML_ParserFree);
  if (!parser) return Error(Errc::system_error, "out of memory for an XML parser");
  XmlState state{reader, parser.get()};
  XML_SetUserData(parser.get(), &state);
  XML_SetElementHandler(parser.get(), on_open, on_close);
  XML_SetStartDoctypeDeclHandler(parser.get(), on_doctype);
  for (bool final = false; !final;) {
    const std::size_t bytes = std::min(text.size(), chunk_bytes);
    final = bytes == text.size();
    if (XML_Parse(parser.get(), text.data(), static_cast<int>(bytes), final) != XML_STATUS_OK) return failure_of(state);
    text.remove_prefix(bytes);
  }
  return success();
}

std::string_view root_tag(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with('<')) return {};
    const bool comment = text.starts_with("<!--");
    if (!comment && !text.starts_with("<?") && !text.starts_with("<!")) break;
    // A document type declaration may contain an internal subset.
    const bool has_subset = text.substr(0, text.find('>')).find('[') != std::string_view::npos;
    const std::string_view closing = comment ? "-->" : text[1] == '?' ? "?>" : has_subset ? "]>" : ">";
    const std::size_t end = text.find(closing);
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + closing.size());
  }
  return text.substr(1, text.find('>') - 1);  // without a ">": to the end of the text
}

}  // namespace muniment::evidence::reports
