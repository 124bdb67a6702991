// Extracts text from PDF files with poppler.
#include "retrieval/text/formats/pdf.hpp"

#include <iconv.h>
#include <poppler-document.h>
#include <poppler-global.h>
#include <poppler-page.h>

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/text/formats/right_to_left.hpp"

namespace muniment::retrieval {
namespace {

thread_local bool tables_missing = false;

// Keeps poppler's messages off stderr; notes the one that explains why a page has no text.
void take_message(const std::string& message, void*) {
  tables_missing |= message.find("language pack") != std::string::npos;
}

// Runs once per process. Poppler's tables for Chinese, Japanese and Korean fonts are in its own folder (poppler-data).
void prepare_poppler() {
  static std::once_flag once;
  std::call_once(once, [] { poppler::set_debug_error_function(take_message, nullptr); });
}

// Poppler's UTF-16 text without byte order marks, control characters and lone surrogates.
std::u32string characters_of(const poppler::ustring& text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char32_t c = text[i];
    if (c >= 0xD800 && c < 0xDC00 && i + 1 < text.size() && text[i + 1] >= 0xDC00 && text[i + 1] < 0xE000) {
      c = 0x10000 + ((c - 0xD800) << 10) + (text[++i] - char32_t{0xDC00});
    }
    const bool surrogate = c >= 0xD800 && c < 0xE000, control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    if (!surrogate && !control && c != 0xFEFF) out += c;
  }
  return out;
}

void append_characters(std::string& out, const std::u32string& text) {
  for (const char32_t c : text) append_utf8(out, c);
}

std::u32string text_of_page(const poppler::page& page) {
  std::u32string text = characters_of(page.text(poppler::rectf(), poppler::page::non_raw_non_physical_layout));
  if (text.find(char32_t{0x202B}) == std::u32string::npos) return text;
  remove_embedding(text);
  if (std::none_of(text.begin(), text.end(), is_arabic_letter)) return text;
  Ligatures ligatures;
  for (const poppler::text_box& box : page.text_list()) {
    const poppler::ustring letters = box.text();
    std::vector<DrawnCharacter> drawn;
    for (std::size_t i = 0; i < letters.size(); ++i) drawn.push_back({letters[i], box.char_bbox(i).width()});
    ligatures.add_word(drawn);
  }
  ligatures.restore(text);
  return text;
}

Error too_large(std::string what, std::int64_t limit) {
  Error error(Errc::too_large, fmt::format("the PDF holds more than {}; ingest it in parts", what));
  error.limit = limit;
  return error;
}

Result<ExtractedText> read_pages(const poppler::document& document) {
  ExtractedText out;
  const int pages = document.pages();
  if (pages > limits::document_pdf_pages_max)
    return too_large(fmt::format("{} pages", limits::document_pdf_pages_max), limits::document_pdf_pages_max);
  for (int number = 0; number < pages; ++number) {
    const std::unique_ptr<poppler::page> page(document.create_page(number));
    if (!page) continue;
    if (!out.text.empty()) out.text += "\n\n";
    const std::size_t start = out.text.size();
    append_characters(out.text, text_of_page(*page));
    if (out.text.size() > limits::document_text_bytes_max) {
      return too_large(human_size(limits::document_text_bytes_max) + " of text",
                       static_cast<std::int64_t>(limits::document_text_bytes_max));
    }
    const std::uint32_t heading = out.blocks.headings.add(0, fmt::format("page {}", number + 1));
    add_paragraphs(out.blocks.list, out.text, {start, out.text.size()}, heading, Break::record);
  }
  if (out.blocks.list.empty() && tables_missing)
    return Error(Errc::invalid_argument,
                 "the PDF's fonts need tables that are not installed; install poppler-data and ingest it again");
  if (out.blocks.list.empty())
    return Error(Errc::invalid_argument,
                 "the PDF holds no text: its pages may be images; apply text recognition and ingest the result");
  append_characters(out.blocks.title, characters_of(document.get_title()));
  return out;
}

}  // namespace

Result<ExtractedText> extract_pdf(std::string_view bytes) {
  if (bytes.size() > limits::document_pdf_bytes_max)
    return too_large(human_size(limits::document_pdf_bytes_max),
                     static_cast<std::int64_t>(limits::document_pdf_bytes_max));
  prepare_poppler();
  tables_missing = false;
  try {
    const std::unique_ptr<poppler::document> document(
        poppler::document::load_from_raw_data(bytes.data(), static_cast<int>(bytes.size())));
    if (!document) return Error(Errc::corrupt, "the PDF cannot be read: it is damaged or truncated");
    if (document->is_locked())
      return Error(Errc::invalid_argument, "the PDF is encrypted and needs a password; ingest a copy without one");
    return read_pages(*document);
  } catch (const std::bad_alloc&) {
    throw;  // handled by read_document
  } catch (const std::exception& problem) {
    return Error(Errc::corrupt, fmt::format("the PDF cannot be read: {}", problem.what()));
  }
}

void load_readers() {
  prepare_poppler();
  // Poppler loads its tables when the first document is opened while none is open; this document stays open, so that it
  // loads them once.
  static constexpr std::string_view blank =
      "%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj trailer<</Root 1 0 R>>";
  static const std::unique_ptr<poppler::document> kept(
      poppler::document::load_from_raw_data(blank.data(), static_cast<int>(blank.size())));
  ::tzset();  // dates in a PDF are local times
  // Poppler converts with iconv, whose UTF-16 is a module on disk. These descriptors stay open to keep it loaded.
  static const iconv_t to = iconv_open("UTF-16", "UTF-8"), from = iconv_open("UTF-8", "UTF-16");
  (void)to, (void)from;
}

}  // namespace muniment::retrieval
