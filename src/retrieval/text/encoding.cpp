// Detects encodings and converts documents to UTF-8.
#include "retrieval/text/encoding.hpp"

#include <uchardet/uchardet.h>
#include <unicode/uchar.h>
#include <unicode/ucnv.h>
#include <unicode/udata.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// A name that ICU knows for the superset that is in use under this name: Korean and Chinese pages declare, and
// uchardet reports, the smaller sets.
std::string converter_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view korean : {"uhc", "cp949", "ms949", "euc-kr", "ks_c_5601-1987", "ksc5601"}) {
    if (lower == korean) return "windows-949";
  }
  return lower == "gb2312" || lower == "gbk" ? "gb18030" : std::string(name);
}

Error too_large() {
  Error error(Errc::too_large, fmt::format("the document holds more than {} of text; ingest it in parts",
                                           human_size(limits::document_text_bytes_max)));
  error.limit = static_cast<std::int64_t>(limits::document_text_bytes_max);
  return error;
}

Error binary(std::string_view what, std::string_view bytes) {
  const std::string_view kind = binary_kind(bytes);
  return {Errc::invalid_argument,
          fmt::format(
              "the document {} and {}; ingest text, Markdown, code, HTML, JSON, JSONL or PDF", what,
              kind.empty() ? std::string("is not text in any known encoding") : fmt::format("looks like {}", kind))};
}

// ICU's built-in converters, which are part of its library: it must not search for files.
using Converter = std::unique_ptr<UConverter, decltype(&ucnv_close)>;
Converter converter(const std::string& name) {
  UErrorCode error = U_ZERO_ERROR;
  static const bool no_files = [] {
    UErrorCode ignored = U_ZERO_ERROR;
    udata_setFileAccess(UDATA_NO_FILES, &ignored);
    return true;
  }();
  (void)no_files;
  UConverter* opened =
      name.find(',') == std::string::npos ? ucnv_open(name.c_str(), &error) : nullptr;  // ',' would begin an option
  return {U_SUCCESS(error) ? opened : nullptr, &ucnv_close};
}

// Converts everything, with U+FFFD for invalid sequences.
Result<std::string> converted(UConverter* from, std::string_view bytes) {
  const Converter to = converter("UTF-8");
  std::string out;
  std::string buffer(std::size_t{64} << 10, '\0');
  UChar pivot[1024];
  UChar *pivot_source = pivot, *pivot_target = pivot;
  const char* source = bytes.data();
  UErrorCode error = U_BUFFER_OVERFLOW_ERROR;
  for (bool first = true; error == U_BUFFER_OVERFLOW_ERROR; first = false) {
    error = U_ZERO_ERROR;
    char* target = buffer.data();
    ucnv_convertEx(to.get(), from, &target, buffer.data() + buffer.size(), &source, bytes.data() + bytes.size(), pivot,
                   &pivot_source, &pivot_target, pivot + std::size(pivot), first, true, &error);
    out.append(buffer.data(), static_cast<std::size_t>(target - buffer.data()));
    if (out.size() > limits::document_text_bytes_max) return too_large();
  }
  if (U_FAILURE(error))
    return Error(Errc::invalid_argument,
                 fmt::format("the document cannot be converted to UTF-8: {}", u_errorName(error)));
  if (out.starts_with("\xEF\xBB\xBF")) out.erase(0, 3);
  if (out.find('\0') != std::string::npos) return binary("holds NUL characters", bytes);
  return out;
}

Result<Decoded> convert_from(const std::string& encoding, std::string_view bytes) {
  const Converter from = converter(encoding);
  if (!from)
    return Error(Errc::invalid_argument,
                 fmt::format("the document's encoding, {}, is unknown; convert it to UTF-8", encoding));
  ASSIGN_OR_RETURN(std::string text, converted(from.get(), bytes));
  return Decoded{std::move(text), encoding, false};
}

bool is_control_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0x7F || (byte < 0x20 && !(byte >= 0x08 && byte <= 0x0D) && byte != 0x1B);
}

// The percentage of characters that do not occur in text: control, unassigned, private and replacement characters.
std::size_t odd_percent(std::string_view text) {
  const std::size_t sample = std::min(text.size(), limits::encoding_sample_bytes_max);
  std::size_t odd = 0, total = 1;
  for (std::size_t at = 0; at < sample; ++total) {
    const CodePoint here = decode_utf8(text, at);
    const bool control = here.value < 0x80 && is_control_byte(static_cast<char>(here.value));
    const bool private_use = here.value >= 0xE000 && here.value < 0xF900;
    odd += control || private_use || here.value == 0xFFFD || !u_isdefined(static_cast<UChar32>(here.value));
    at += here.size == 0 ? 1 : here.size;
  }
  return (odd * 100 + total - 1) / total;
}

// A mark may precede binary content by chance.
Result<Decoded> decode_marked(const std::string& encoding, std::string_view bytes) {
  ASSIGN_OR_RETURN(Decoded decoded, convert_from(encoding, bytes));
  if (odd_percent(decoded.text) > 10) return binary(fmt::format("begins like {} but is not text", encoding), bytes);
  return decoded;
}

Result<Decoded> decode_with_nulls(std::string_view bytes) {
  const std::string encoding(wide_encoding(bytes));
  if (!encoding.empty() && binary_kind(bytes).empty()) {
    auto decoded = convert_from(encoding, bytes);
    if (decoded && odd_percent(decoded->text) <= 1) return decoded;
    if (!decoded && decoded.error().code == Errc::too_large) return decoded;
  }
  return binary("holds NUL bytes", bytes);
}

// Repairs damaged UTF-8: cut within a character, or a few stray bytes in mostly valid text.
std::string repaired(std::string_view bytes, std::size_t& sound, std::size_t& broken) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint here = decode_utf8(bytes, at);
    if (here.size > 1) ++sound;
    if (here.size > 0) {
      text += bytes.substr(at, here.size);
      at += here.size;
      continue;
    }
    ++broken;
    text += replacement;
    // The rest of an incomplete sequence is dropped with its beginning.
    const auto lead = static_cast<unsigned char>(bytes[at]);
    std::size_t wanted = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    for (++at; wanted > 0 && at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80; --wanted)
      ++at;
  }
  return text;
}

// Decodes text in ASCII with the escape sequences of ISO 2022; none if it is not.
std::optional<Decoded> decode_escaped(std::string_view bytes) {
  const bool korean = bytes.find("\x1b$)C") != std::string_view::npos;
  const bool half_width = bytes.find("\x1b(I") != std::string_view::npos;
  auto decoded = convert_from(korean ? "ISO-2022-KR" : half_width ? "JIS7" : "ISO-2022-JP-2", bytes);
  if (!decoded || odd_percent(decoded->text) > 0) return std::nullopt;
  decoded->encoding = korean ? "ISO-2022-KR" : "ISO-2022-JP";
  return *std::move(decoded);
}

// Decodes windows-1252 that was appended to UTF-8, or the reverse: what is valid UTF-8 remains.
Result<std::string> mixed(std::string_view bytes) {
  std::string high;
  for (int byte = 0x80; byte < 0x100; ++byte) high += static_cast<char>(byte);
  ASSIGN_OR_RETURN(const Decoded table, convert_from("windows-1252", high));
  std::vector<std::string_view> characters;
  for (std::size_t at = 0; at < table.text.size(); at += characters.back().size())
    characters.push_back(std::string_view(table.text).substr(at, decode_utf8(table.text, at).size));
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint here = decode_utf8(bytes, at);
    text += here.size > 0 ? bytes.substr(at, here.size) : characters[static_cast<unsigned char>(bytes[at]) - 0x80U];
    at += std::max<std::size_t>(1, here.size);
  }
  if (text.size() > limits::document_text_bytes_max) return too_large();
  return text;
}

std::string guessed_encoding(std::string_view bytes, std::size_t first_odd) {
  const std::size_t start = first_odd - std::min<std::size_t>(first_odd, 1024);
  const std::string_view sample = bytes.substr(start, limits::encoding_sample_bytes_max);
  const std::unique_ptr<uchardet, decltype(&uchardet_delete)> detector(uchardet_new(), &uchardet_delete);
  std::string name;
  if (uchardet_handle_data(detector.get(), sample.data(), sample.size()) == 0) {
    uchardet_data_end(detector.get());
    name = converter_name(uchardet_get_charset(detector.get()));
  }
  if (name == "WINDOWS-1252" || name == "ISO-8859-1" || name == "ASCII" || name == "UTF-8" || name.empty() ||
      !converter(name))
    return "windows-1252";
  return name;
}

}  // namespace

Result<Decoded> decode(std::string_view bytes, std::string_view declared) {
  if (bytes.size() > 4 * limits::document_text_bytes_max + 4) return too_large();
  if (const std::string marked(marked_encoding(bytes)); !marked.empty()) return decode_marked(marked, bytes);
  if (bytes.find('\0') != std::string_view::npos) return decode_with_nulls(bytes);
  const std::size_t first_odd = first_invalid_utf8(bytes);
  if (bytes.size() > limits::document_text_bytes_max) return too_large();
  if (first_odd == std::string_view::npos && has_charset_escape(bytes)) {
    if (auto decoded = decode_escaped(bytes)) return *std::move(decoded);
  }
  const std::string_view sample = bytes.substr(0, limits::encoding_sample_bytes_max);
  const auto controls = static_cast<std::size_t>(std::count_if(sample.begin(), sample.end(), is_control_byte));
  if (controls * 10 > sample.size()) return binary("is full of control characters", bytes);
  if (first_odd == std::string_view::npos) return Decoded{std::string(bytes), "UTF-8", true};
  if (controls * 50 > sample.size() || !binary_kind(bytes).empty()) return binary("is not UTF-8", bytes);
  std::size_t sound = 0, broken = 0;
  std::string text = repaired(bytes, sound, broken);
  const bool cut_off = broken == 1 && bytes.size() - first_odd < 4 &&
                       static_cast<unsigned char>(bytes[first_odd]) >= 0xC2 && first_odd > 0 &&
                       (sound > 0 || bytes.size() - first_odd > 1);
  if (cut_off || sound >= 10 * broken) {
    if (text.size() > limits::document_text_bytes_max) return too_large();
    return Decoded{std::move(text), "UTF-8 (damaged)", false};
  }
  if (const std::string name = converter_name(declared); !name.empty() && converter(name))
    return convert_from(name, bytes);
  const std::string guessed = guessed_encoding(bytes, first_odd);
  if (guessed != "windows-1252" || sound == 0) return convert_from(guessed, bytes);
  ASSIGN_OR_RETURN(text, mixed(bytes));
  return Decoded{std::move(text), guessed, false};
}

bool has_charset_escape(std::string_view bytes) {
  for (std::size_t at = bytes.find("\x1b$"); at != std::string_view::npos; at = bytes.find("\x1b$", at + 1)) {
    const std::string_view rest = bytes.substr(at + 2, 2);
    if (rest.starts_with('B') || rest.starts_with('@') || rest == "(D" || rest == ")C") return true;
  }
  return false;
}

std::size_t unreadable_percent(std::string_view text) {
  const std::size_t sample = std::min(text.size(), limits::encoding_sample_bytes_max);
  std::size_t unreadable = 0, total = 0;
  for (std::size_t at = 0; at < sample;) {
    const CodePoint here = decode_utf8(text, at);
    at += std::max<std::size_t>(1, here.size);
    if (u_isUWhiteSpace(static_cast<UChar32>(here.value))) continue;
    const bool late_control = here.value >= 0x80 && here.value < 0xA0;  // no text has them; a wrong decoding does
    unreadable += late_control || here.value == 0xFFFD || !u_isdefined(static_cast<UChar32>(here.value));
    ++total;
  }
  return total == 0 ? 0 : unreadable * 100 / total;
}

}  // namespace muniment::retrieval
