// Reads documents: decoding, format, blocks and chunks.
#include "retrieval/text/document_text.hpp"

#include <fmt/format.h>

#include <new>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "retrieval/text/blocks.hpp"
#include "retrieval/text/encoding.hpp"
#include "retrieval/text/excerpt.hpp"
#include "retrieval/text/format.hpp"
#include "retrieval/text/formats/html.hpp"
#include "retrieval/text/formats/pdf.hpp"
#include "retrieval/text/language.hpp"

namespace muniment::retrieval {
namespace {

// charset=… of a mime type or of an HTML page.
std::string declared_charset(std::string_view source) {
  const std::size_t at = source.find("charset=");
  if (at == std::string_view::npos) return {};
  source.remove_prefix(at + 8);
  if (source.starts_with('"') || source.starts_with('\'')) source.remove_prefix(1);
  return std::string(source.substr(0, std::min(source.find_first_of("\"' ;/>"), std::size_t{40})));
}

Blocks blocks_of(Format format, std::string_view text, std::string_view name) {
  switch (format) {
    case Format::markdown: return markdown_blocks(text);
    case Format::code: return code_blocks(text, name);
    case Format::json: return json_blocks(text);
    case Format::jsonl: return jsonl_blocks(text);
    case Format::text:
    case Format::html:
    case Format::pdf: break;
  }
  return text_blocks(text);
}

// Code and data have no language, but a conversation of people and models does.
std::string language_in(Format format, std::string_view text, bool turns) {
  const bool is_data = format == Format::json || format == Format::jsonl;
  if (format == Format::code || (is_data && !turns)) return "none";
  if (!is_data) return language_of(text);
  return language_of(index_text_of(format, first_graphemes(text, limits::language_sample_bytes_max)));
}

void finish(DocumentText& document, Blocks blocks, std::string_view name) {
  document.chunks = pack(document.text, blocks);
  document.title = summary_of(blocks.title, limits::document_title_bytes_max);
  if (document.title.empty())
    document.title = summary_of(name.substr(name.rfind('/') + 1), limits::document_title_bytes_max);
  document.language = language_in(document.format, document.text, blocks.turns);
}

// A text with more of these characters was decoded wrongly, or was damaged before.
constexpr std::size_t unreadable_percent_max = 20;

Status check_readable(std::string_view text) {
  const std::size_t percent = unreadable_percent(text);
  if (percent <= unreadable_percent_max) return success();
  return Error(
      Errc::invalid_argument,
      fmt::format("{} % of its characters are unassigned or replacement characters (limit {} %): its encoding or "
                  "its fonts are unknown; convert it to UTF-8",
                  percent, unreadable_percent_max));
}

Result<DocumentText> read(std::string_view bytes, std::string_view name, std::string_view mime_type) {
  DocumentText document;
  if (is_pdf(bytes, name, mime_type)) {
    ASSIGN_OR_RETURN(ExtractedText extracted, extract_pdf(bytes));
    document.format = Format::pdf;
    document.as_is = false;
    document.encoding = "UTF-8";
    document.text = std::move(extracted.text);
    RETURN_IF_ERROR(check_readable(document.text));
    finish(document, std::move(extracted.blocks), name);
    return document;
  }
  std::string charset = declared_charset(mime_type);
  if (charset.empty()) charset = declared_charset(bytes.substr(0, 1024));
  ASSIGN_OR_RETURN(Decoded decoded, decode(bytes, charset));
  RETURN_IF_ERROR(check_readable(decoded.text));
  document.format = format_of(decoded.text, name, mime_type);
  document.encoding = std::move(decoded.encoding);
  document.as_is = decoded.as_is;
  if (document.format == Format::html) {
    ExtractedText extracted = extract_html(decoded.text);
    document.as_is = false;
    document.text = std::move(extracted.text);
    finish(document, std::move(extracted.blocks), name);
    return document;
  }
  document.text = std::move(decoded.text);
  finish(document, blocks_of(document.format, document.text, name), name);
  return document;
}

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::text: return "text";
    case Format::markdown: return "markdown";
    case Format::code: return "code";
    case Format::html: return "html";
    case Format::json: return "json";
    case Format::jsonl: return "jsonl";
    case Format::pdf: return "pdf";
  }
  return "text";
}

Format format_named(std::string_view name) {
  for (const Format format : {Format::markdown, Format::code, Format::html, Format::json, Format::jsonl, Format::pdf}) {
    if (name_of(format) == name) return format;
  }
  return Format::text;
}

std::string_view chunker_identity() { return "chunk/1"; }

bool looks_plain(std::string_view bytes, std::string_view name, std::string_view mime_type) {
  if (is_pdf(bytes, name, mime_type) || first_invalid_utf8(bytes) != std::string_view::npos ||
      has_charset_escape(bytes)) {
    return false;
  }
  return format_of(bytes, name, mime_type) != Format::html;
}

Result<DocumentText> read_document(std::string_view bytes, std::string_view name, std::string_view mime_type) {
  try {
    auto document = read(bytes, name, mime_type);
    if (!document) return std::move(document).error().within(fmt::format("reading {}", summary_of(name, 200)));
    return document;
  } catch (const std::bad_alloc&) {
    return Error(Errc::too_large,
                 fmt::format("reading {}: not enough memory; ingest it in parts", summary_of(name, 200)));
  }
}

}  // namespace muniment::retrieval
