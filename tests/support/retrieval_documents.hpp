// Helpers for tests of documents.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

inline DocumentText read(std::string_view bytes, std::string_view name, std::string_view mime_type = "") {
  auto document = read_document(bytes, name, mime_type);
  EXPECT_TRUE(document.ok()) << name << ": " << document.error().message;
  return document.ok() ? std::move(*document) : DocumentText{};
}

inline std::string_view text_of(const DocumentText& document, const Chunk& chunk) {
  return std::string_view(document.text)
      .substr(static_cast<std::size_t>(chunk.start), static_cast<std::size_t>(chunk.end - chunk.start));
}

inline std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace muniment::retrieval
