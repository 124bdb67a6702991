// Target of documents in every format: for any bytes, the chunks satisfy their invariants, or the document is refused.
#include <algorithm>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "fuzz/target.hpp"
#include "retrieval/text/document_text.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::fuzz {
namespace {

using namespace retrieval;

void check_chunks(const DocumentText& document) {
  const std::string_view text = document.text;
  std::size_t at = 0;
  for (const Chunk& chunk : document.chunks) {
    const auto start = static_cast<std::size_t>(chunk.start), end = static_cast<std::size_t>(chunk.end);
    require(start >= at && end > start && end <= text.size(), "chunks are out of order or outside the text");
    require(end - start <= limits::chunk_bytes_max, "a chunk is too long");
    require(trimmed(text.substr(at, start - at)).empty(), "text lies between chunks");
    const std::string_view piece = text.substr(start, end - start);
    require(first_invalid_utf8(piece) == std::string::npos, "a chunk is cut inside a character");
    require(first_invalid_utf8(chunk.heading) == std::string::npos, "a heading is not UTF-8");
    require(first_invalid_utf8(index_text_of(document.format, piece)) == std::string::npos,
            "an index text is not UTF-8");
    for (const std::string& excerpt : {summary_of(piece, 60), snippet_of(piece, {"the", "a", "\xe6\x97\xa5"}, 60)}) {
      require(excerpt.size() <= 60 && first_invalid_utf8(excerpt) == std::string::npos,
              "an excerpt is too long or not UTF-8");
    }
    at = end;
  }
  require(trimmed(text.substr(at)).empty(), "text lies after the last chunk");
}

// The first line is the document's name.
void try_document(const std::string& input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string bytes = input.substr(std::min(end + 1, input.size()));
  const auto document = read_document(bytes, input.substr(0, std::min<std::size_t>(end, 64)), "");
  if (!document) return;
  require(!document->as_is || document->text == bytes, "a text that is said to be the document is not");
  require(document->title.size() <= limits::document_title_bytes_max, "a title is too long");
  require(document->language == "none" || document->language.size() == 2, "a language has another name");
  check_chunks(*document);
}

std::string document_seed(const std::string& name) { return name + "\n" + golden("retrieval/text/" + name); }

}  // namespace

std::vector<Target> retrieval_text_targets() {
  load_readers();
  const std::string pdf =
      "a.pdf\n%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
      "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Courier>>>>>>>>endobj "
      "4 0 obj<</Length 27>>stream\nBT /F 9 Tf (some text) Tj ET\nendstream endobj trailer<</Root 1 0 R>>";
  return {
      {"text_prose",
       try_document,
       {document_seed("arabic.txt"), document_seed("guide.md"), document_seed("japanese.md"), "a\n\xff\xfeG\0r\0",
        "a\nGr\xfc\xdf"
        "e"}},
      {"text_code",
       try_document,
       {document_seed("stack.rs"), document_seed("gauge.py"), document_seed("schema.sql"),
        document_seed("settings.toml")}},
      {"text_data", try_document, {document_seed("orders.json"), document_seed("chat.jsonl")}},
      {"text_html", try_document, {document_seed("page.html")}},
      {"text_pdf", try_document, {pdf}},
  };
}

}  // namespace muniment::fuzz
