// Tests of each format on small documents: golden chunks (tests/golden/retrieval/text), encodings, refused documents
// and their errors, and documents that are designed to be slow.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "retrieval/text/document_text.hpp"
#include "retrieval/text/formats/html.hpp"
#include "retrieval/text/formats/right_to_left.hpp"
#include "support/retrieval_documents.hpp"

namespace muniment::retrieval {
namespace {

const std::filesystem::path golden_folder = std::filesystem::path(MUNIMENT_GOLDEN) / "retrieval/text";

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Error refusal(std::string_view bytes, std::string_view name) {
  const auto document = read_document(bytes, name, "");
  EXPECT_FALSE(document.ok()) << name;
  return document.ok() ? Error{} : document.error();
}

std::string described(const DocumentText& document) {
  std::string out = fmt::format("{}, {}, {}{}, \"{}\"\n", name_of(document.format), document.language,
                                document.encoding, document.as_is ? "" : ", extracted", document.title);
  for (const Chunk& chunk : document.chunks) {
    const std::string_view text = text_of(document, chunk);
    const std::string_view last = text.substr(text.size() - std::min<std::size_t>(text.size(), 40));
    const std::size_t edge = std::min(last.find_first_of(" \n"), last.size());
    out += fmt::format("{:5} {:5}  [{}]  {} / {}\n", chunk.start, chunk.end, chunk.heading, summary_of(text, 50),
                       summary_of(last.substr(edge), 50));
  }
  return out;
}

// Returns a PDF with a page for each text and a cross-reference table, in Courier, one line a page.
std::string pdf_of(const std::vector<std::string>& pages) {
  std::vector<std::string> objects = {"<< /Type /Catalog /Pages 2 0 R >>", "",
                                      "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
                                      "<< /Title (A tide table) >>"};
  std::string kids;
  for (const std::string& text : pages) {
    const std::string content = "BT /F1 12 Tf 40 700 Td (" + text + ") Tj ET";
    objects.push_back(fmt::format("<< /Length {} >>\nstream\n{}\nendstream", content.size(), content));
    objects.push_back(fmt::format(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
        objects.size()));
    kids += fmt::format("{} 0 R ", objects.size());
  }
  objects[1] = fmt::format("<< /Type /Pages /Kids [{}] /Count {} >>", kids, pages.size());
  std::string file = "%PDF-1.4\n", table = "0000000000 65535 f \n";
  for (std::size_t i = 0; i < objects.size(); ++i) {
    table += fmt::format("{:010} 00000 n \n", file.size());
    file += fmt::format("{} 0 obj\n{}\nendobj\n", i + 1, objects[i]);
  }
  return file + fmt::format("xref\n0 {}\n{}trailer\n<< /Size {} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{}\n%%EOF\n",
                            objects.size() + 1, table, objects.size() + 1, file.size());
}

}  // namespace

TEST(DocumentFormats, GoldenDocumentsBecomeTheChunksThatTheyDid) {
  const bool accept = std::getenv("MUNIMENT_ACCEPT") != nullptr;
  int documents = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder)) {
    const std::filesystem::path path = entry.path();
    if (path.extension() == ".chunks" || path.filename() == "README.md") continue;
    SCOPED_TRACE(path.filename());
    ++documents;
    const std::string expected_path = path.string() + ".chunks",
                      seen = described(read(file_text(path), path.filename().string()));
    if (accept) std::ofstream(expected_path) << seen;
    EXPECT_EQ(file_text(expected_path), seen);
  }
  EXPECT_GE(documents, 10);
}

TEST(DocumentFormats, AreToldByNameThenByTypeThenByContent) {
  EXPECT_EQ(read("# a\n", "a.md").format, Format::markdown);
  EXPECT_EQ(read("# a\n", "a.txt", "text/markdown").format, Format::text);
  EXPECT_EQ(read("# a\n", "notes/a", "text/markdown; charset=utf-8").format, Format::markdown);
  EXPECT_EQ(read("all:\n\tcc a.c\n", "src/Makefile").format, Format::code);
  EXPECT_EQ(read("#!/bin/sh\necho\n", "run").format, Format::code);
  EXPECT_EQ(read("  <!DOCTYPE HTML><p>x", "c0/D1:1").format, Format::html);
  EXPECT_EQ(read("[1, {\"a\": []}]", "x").format, Format::json);
  EXPECT_EQ(read("{\"a\": 1}\n{\"a\": 2}\n", "x").format, Format::jsonl);
  EXPECT_EQ(read("# Title\n\nText with [a link](x).\n", "x").format, Format::markdown);
  EXPECT_EQ(read("Caroline: Hey Mel! Good to see you!", "c0/D1:1").format, Format::text);
  EXPECT_EQ(read("{\"a\": 1,}", "a.json").format, Format::text) << "broken JSON is text";
  EXPECT_EQ(read("{\"a\": 1}\n{\"a\": 2}\n", "a.json").format, Format::jsonl);
  EXPECT_EQ(read("[1] or not", "x").format, Format::text);
}

TEST(DocumentFormats, EncodingsAreFoundAndConverted) {
  const std::string utf8 =
      "Grüße aus Köln: 30 € für zwei Kännchen, bitte. Übermorgen sind wir wieder zu Hause und räumen auf.";
  const auto wide = [&](bool big, std::size_t unit, bool mark) {
    std::string out;
    std::u32string points = mark ? U"\uFEFF" : U"";
    points += U"Grüße aus Köln: 30 € für zwei Kännchen, bitte. Übermorgen sind wir wieder zu Hause und räumen auf.";
    for (const char32_t c : points) {
      for (std::size_t i = 0; i < unit; ++i) out += static_cast<char>(c >> (8 * (big ? unit - 1 - i : i)));
    }
    return out;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {wide(false, 2, true), "UTF-16LE"},
      {wide(true, 2, true), "UTF-16BE"},
      {wide(false, 4, true), "UTF-32LE"},
      {wide(true, 4, true), "UTF-32BE"},
      {wide(false, 2, false), "UTF-16LE"},
      {wide(true, 2, false), "UTF-16BE"},
      {wide(false, 4, false), "UTF-32LE"},
      {"Gr\xfc\xdf"
       "e aus K\xf6ln: 30 \x80 f\xfcr zwei K\xe4nnchen, bitte. \xdc"
       "bermorgen sind wir wieder zu Hause und r\xe4umen auf.",
       "windows-1252"}};
  for (const auto& [bytes, encoding] : cases) {
    const DocumentText document = read(bytes, "a.txt");
    EXPECT_EQ(document.text, utf8) << encoding;
    EXPECT_EQ(document.encoding, encoding);
    EXPECT_FALSE(document.as_is);
    EXPECT_EQ(document.language, "de");
  }
  const DocumentText marked = read("\xEF\xBB\xBF" + utf8, "a.txt");
  EXPECT_TRUE(marked.as_is);
  EXPECT_EQ(marked.chunks.front().start, 3) << "the mark is no part of a chunk";
}

TEST(DocumentFormats, OldEncodingsOfOtherScriptsAreGuessedOrBelieved) {
  // "Привет, как дела? Комитет собрался во вторник и согласовал бюджет." in windows-1251; 日本語の文章です。 in
  // Shift_JIS.
  const std::string cyrillic =
      "\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0? \xca\xee\xec\xe8\xf2\xe5\xf2 \xf1\xee\xe1\xf0\xe0\xeb\xf1\xff \xe2\xee "
      "\xe2\xf2\xee\xf0\xed\xe8\xea \xe8 \xf1\xee\xe3\xeb\xe0\xf1\xee\xe2\xe0\xeb \xe1\xfe\xe4\xe6\xe5\xf2.";
  EXPECT_TRUE(read(cyrillic, "a.txt").text.starts_with("Привет, как дела?"));
  EXPECT_EQ(read(cyrillic, "a.txt").language, "ru");
  EXPECT_TRUE(read(cyrillic.substr(0, 6), "a.txt", "text/plain; charset=windows-1251").text.starts_with("Привет"));
  const std::string japanese = "\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7\x81\x42";
  EXPECT_EQ(read(japanese, "a.txt", "text/plain; charset=Shift_JIS").text, "日本語の文章です。");
  EXPECT_EQ(read("<meta charset=\"windows-1251\"><p>" + cyrillic, "a.html").text.substr(0, 12), "Привет");
}

TEST(DocumentFormats, Utf8ThatWasCutOffOrDamagedIsRepaired) {
  EXPECT_EQ(read("so far so good \xe2\x80", "log.txt").text, "so far so good \xEF\xBF\xBD");
  const DocumentText document = read(repeated("Größe ", 20) + "\xff" + " rest", "log.txt");
  EXPECT_EQ(document.encoding, "UTF-8 (damaged)");
  EXPECT_FALSE(document.as_is);
  EXPECT_TRUE(document.text.ends_with("\xEF\xBF\xBD rest"));
}

TEST(DocumentFormats, KoreanIsDecodedAsTheSupersetThatIsInUse) {
  const std::string korean =
      "펌프 점검 결과를 먼저 확인하고 밸브를 닫습니다. 뷁 회의는 월요일 오전 아홉 시에 시작합니다.";
  const std::string bytes =
      "\306\337\307\301 \301\241\260\313 \260\341\260\372\270\246 \270\325\300\372 \310\256\300\316\307\317\260\355 \271\353\272\352\270\246 \264\335\275\300\264\317\264\331. \224\356 \310\270\300\307\264\302 \277\371\277\344\300\317 \277\300\300\374 \276\306\310\251 \275\303\277\241 \275\303\300\333\307\325\264\317\264\331.";
  for (const char* type : {"", "text/plain; charset=euc-kr", "text/plain; charset=ks_c_5601-1987"})
    EXPECT_EQ(read(bytes, "a.txt", type).text, korean) << type;
  EXPECT_EQ(read(bytes, "a.txt").encoding, "windows-949");
}

TEST(DocumentFormats, EscapeSequencesOfJapaneseAndKoreanAreDecoded) {
  const std::string japanese = "\033$B2q5D$O7nMKF|$N8aA06e;~$K;O$^$j$^$9!#\033(B";
  EXPECT_EQ(read(japanese, "a.txt").text, "会議は月曜日の午前九時に始まります。");
  EXPECT_EQ(read(japanese, "a.txt").encoding, "ISO-2022-JP");
  EXPECT_FALSE(looks_plain(japanese, "a.txt", "")) << "a converter runs in the child";
  EXPECT_EQ(read("\033$)C\016F_GA\017", "a.txt").text, "펌프");
  EXPECT_TRUE(read("\033$B?\033[0m", "build.log").as_is) << "no text in this encoding";
}

TEST(DocumentFormats, Windows1252InsideUtf8IsDecodedAndTheRestIsKept) {
  EXPECT_EQ(read("Cr\350me br\373l\351e costs 5 \200. But na\303\257ve is UTF-8.", "a.md").text,
            "Crème brûlée costs 5 €. But naïve is UTF-8.");
}

TEST(DocumentFormats, TextThatCannotBeReadIsRefusedWithItsShare) {
  const Error error = refusal(repeated("\xEF\xBF\xBD", 30) + repeated("a", 70), "a.txt");
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_NE(error.message.find("30 % of its characters are unassigned or replacement characters (limit 20 %)"),
            std::string::npos)
      << error.message;
  EXPECT_NE(refusal(repeated("\xCD\xB8", 9), "a.txt").message.find("100 %"), std::string::npos);
  EXPECT_TRUE(read(repeated("\xEF\xBF\xBD", 20) + repeated("a", 80), "a.txt").as_is);
}

TEST(DocumentFormats, PicturesOfANotebookAreNoPassages) {
  const std::string picture = "iVBORw0KGgo" + repeated("QUJD", 2'000), small = "c21hbGw";
  const auto passages = [&](const std::string& version) {
    const std::string cells =
        R"({"cells":[{"cell_type":"markdown","source":["The antechinus count rose."],"attachments":{"a.png":{"image/png":")" +
        small + R"("}}},{"cell_type":"code","outputs":[{"data":{"image/png":[")" + picture + R"(\n",")" + picture +
        R"("],"text/plain":["<Figure of a numbat>"]}},{"data":{"image/png":")" + picture +
        R"("}}],"source":["import phascogale"]}],)";
    const DocumentText document = read(cells + version + "}", "book.ipynb");
    EXPECT_TRUE(document.as_is);
    std::string all;
    for (const Chunk& chunk : document.chunks) all += text_of(document, chunk);
    return all;
  };
  const std::string without = passages(R"("nbformat":4)");
  for (const char* word : {"antechinus", "numbat", "phascogale"}) EXPECT_NE(without.find(word), std::string::npos);
  EXPECT_EQ(without.find("QUJD"), std::string::npos);
  EXPECT_EQ(without.find(small), std::string::npos);
  EXPECT_NE(passages(R"("format":4)").find("QUJD"), std::string::npos) << "other JSON keeps its members";
}

std::filesystem::path cases_folder() {
  const char* shared = std::getenv("MUNIMENT_SHARED");
  return std::filesystem::path(shared == nullptr ? "../shared" : shared) / "cases";
}

TEST(DocumentFormats, CasesOfLegacyEncodingsAreReadable) {
  const auto folder = cases_folder() / "legacy-encodings";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no " << folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".txt") && !name.ends_with(".html")) continue;
    EXPECT_EQ(read(file_text(entry.path()), name).language, name.substr(0, 2)) << name;
  }
}

TEST(RightToLeft, ASpaceBeforeAnEmbeddedRunIsBehindItInReadingOrder) {
  std::u32string text = U"\u202bفي \u202a 12\u202cدقيقة\u202c\nThe pump \u202b تعمل\u202cstops";
  remove_embedding(text);
  EXPECT_EQ(text, U"في 12 دقيقة\nThe pump تعمل stops");
}

TEST(RightToLeft, ALigatureOfLamAndAlefIsReadAsItsFontSays) {
  // السلام: the article's two letters have widths of their own; the ligature in the middle has one width for two
  // letters
  const std::vector<DrawnCharacter> peace = {{U'م', 9.9},  {U'ل', 4.776}, {U'ا', 4.774},
                                             {U'س', 14.3}, {U'ل', 4.9},   {U'ا', 4.4}};
  std::u32string text = U"السالم عليكم";
  Ligatures ligatures;
  ligatures.add_word(peace);
  ligatures.restore(text);
  EXPECT_EQ(text, U"السلام عليكم");
  Ligatures one_width;
  one_width.add_word({{U'م', 5}, {U'ل', 5}, {U'ا', 5}});
  text = U"الم";
  one_width.restore(text);
  EXPECT_EQ(text, U"الم") << "in a font of one width nothing tells a ligature";
}

TEST(DocumentFormats, AFontThatIsNotInThePdfIsReadByPopplersTables) {
  const auto pdf = cases_folder() / "pdf/japanese-predefined.pdf";
  if (!std::filesystem::exists(pdf)) GTEST_SKIP() << "no " << pdf;
  EXPECT_NE(read(file_text(pdf), "a.pdf").text.find("排水ポンプの点検"), std::string::npos);
}

TEST(DocumentFormats, BinaryContentIsRefusedWithWhatItLooksLike) {
  const Error elf = refusal(std::string("\x7f"
                                        "ELF\2\1\1\0\0\0",
                                        10),
                            "a.out");
  EXPECT_EQ(elf.code, Errc::invalid_argument);
  EXPECT_EQ(
      elf.message,
      "reading a.out: the document holds NUL bytes and looks like an ELF executable or library; ingest text, Markdown, code, HTML, JSON, JSONL or PDF");
  EXPECT_NE(refusal("\x89PNG\r\n\x1a\n\xff\xfe", "a.txt").message.find("looks like a PNG image"), std::string::npos);
  EXPECT_NE(refusal(std::string("a\0b", 3), "a.txt").message.find("holds NUL bytes"), std::string::npos);
  EXPECT_NE(refusal("\x01\x02\x03\x04\x05\x06\x0e\x0f", "a.txt").message.find("control characters"), std::string::npos);
  EXPECT_NE(refusal("\xff\xfe\x12\xd8\x34\xdc\x56\xdd\x78\xde\x9a\xdf\x01\x02", "a.mp3")
                .message.find("begins like UTF-16LE but is not text"),
            std::string::npos);
  EXPECT_TRUE(read("\x1b[31mred\x1b[0m and so on\n", "build.log").as_is) << "colours of a log are no reason";
}

TEST(DocumentFormats, ATextOfTheGreatestSizeIsReadAndOneByteMoreIsNot) {
  std::string text = repeated("0123456789abcde\n", limits::document_text_bytes_max / 16);
  EXPECT_GT(read(text, "a.txt").chunks.size(), 40'000U);
  text += '\n';
  const Error error = refusal(text, "a.txt");
  EXPECT_EQ(error.code, Errc::too_large);
  EXPECT_EQ(error.limit, static_cast<std::int64_t>(limits::document_text_bytes_max));
}

TEST(DocumentFormats, APdfIsReadPageByPage) {
  const DocumentText document = read(pdf_of({"High water at noon", "Low water at six"}), "tides.pdf");
  EXPECT_EQ(document.format, Format::pdf);
  EXPECT_EQ(document.title, "A tide table");
  EXPECT_FALSE(document.as_is);
  ASSERT_EQ(document.chunks.size(), 2U);
  EXPECT_EQ(text_of(document, document.chunks[0]), "High water at noon");
  EXPECT_EQ(document.chunks[1].heading, "page 2");
  EXPECT_EQ(read("A PDF begins with %PDF-1.4.", "pdf.md").format, Format::markdown);
  EXPECT_EQ(read(pdf_of({"By its content"}), "no-extension").format, Format::pdf);
}

TEST(DocumentFormats, APdfThatCannotBeReadSaysWhy) {
  EXPECT_EQ(refusal("%PDF-1.4\nrubbish", "a.pdf").code, Errc::corrupt);
  const Error scan = refusal(pdf_of({""}), "a.pdf");
  EXPECT_EQ(scan.code, Errc::invalid_argument);
  EXPECT_NE(scan.message.find("holds no text"), std::string::npos);
  const std::string whole = pdf_of({"cut off"});
  for (std::size_t size = 0; size < whole.size(); size += 7)
    (void)read_document(whole.substr(0, size), "a.pdf", "").ok();
}

// A sandboxed reader may open no file: here, a limit of the process forbids it.
TEST(DocumentFormats, OnceTheReadersAreLoadedNothingNeedsAFile) {
  const auto read_without_files = [] {
    load_readers();
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0 || ::dup(0) >= 0) std::_Exit(2);
    const auto pdf = read_document(pdf_of({"High water at noon"}), "a.pdf", "");
    const auto japanese = read_document("\x93\xfa\x96\x7b", "a.txt", "text/plain; charset=Shift_JIS");
    std::_Exit(pdf.ok() && pdf->chunks.size() == 1 && japanese.ok() && japanese->text == "日本" ? 0 : 1);
  };
  EXPECT_EXIT(read_without_files(), testing::ExitedWithCode(0), "");
}

TEST(DocumentFormats, CharacterReferencesAreThoseOfHtml) {
  EXPECT_EQ(unescape_html("&lt;a&gt; &amp;amp; &Eacute;&yuml; &alpha;&Omega;&sigmaf; &#8364;&#x20ac;&#128; &euro"),
            "<a> &amp; Éÿ αΩς €€€ €");
  EXPECT_EQ(unescape_html("&#0; &#xD800; &#99999999999; &#x; &; &nosuch; AT&T"),
            "\uFFFD \uFFFD \uFFFD &#x; &; &nosuch; AT&T");
}

TEST(DocumentFormats, ChatTurnsStayApartHoweverShort) {
  const DocumentText list = read(
      R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]})", "chat.json");
  ASSERT_EQ(list.chunks.size(), 2U);
  EXPECT_EQ(list.chunks[1].heading, "$.messages[1] › assistant");
  const DocumentText other =
      read("{\"from\": \"human\", \"value\": \"Hi\"}\n{\"from\": \"gpt\", \"value\": \"Hello\"}\n", "sharegpt.jsonl");
  ASSERT_EQ(other.chunks.size(), 2U);
  EXPECT_EQ(other.chunks[0].heading, "record 1 › human");
}

// Documents that would be slow in a reader with backtracking or unbounded lookahead.
TEST(DocumentFormats, HostileDocumentsAreReadInLinearTime) {
  constexpr std::size_t size = 1 << 18;
  const std::vector<std::pair<std::string, std::string>> hostile = {
      {"deep.json", repeated("[", size)},
      {"deep2.json", repeated("[", size / 2) + repeated("]", size / 2)},
      {"objects.json", repeated("{\"a\":", size / 5)},
      {"items.json", "[" + repeated("1,", size / 2) + "1]"},
      {"strings.json", "\"" + repeated("\\\\", size / 2) + "\""},
      {"turns.json", "[" + repeated("{\"role\":\"u\",\"content\":\"\"},", size / 26) + "1]"},
      {"nested.html", repeated("<div>", size / 5)},
      {"formatting.html", repeated("<p><b x=1><i>", size / 13)},
      {"open.html", repeated("<a b=\"", size / 6)},
      {"marks.html", repeated("<", size)},
      {"ends.html", "<script>" + repeated("</", size / 2)},
      {"references.html", repeated("&", size)},
      {"hidden.html", repeated("<p hidden><li hidden>", size / 21)},
      {"headings.html", repeated("<h6>a", size / 5)},
      {"headings.md", repeated("# a\n", size / 4)},
      {"lists.md", repeated("- ", size / 2)},
      {"fences.md", repeated("```\n", size / 4)},
      {"links.md", "# " + repeated("[](", size / 3)},
      {"underlines.md", repeated("a\n-\n", size / 4)},
      {"tables.md", repeated("|", size)},
      {"marks.txt", "a" + repeated("\u0301", size / 2)},
      {"flags.txt", repeated("🇩", size / 4)},
      {"joiners.txt", repeated("\u200D", size / 3)},
      {"stops.txt", repeated(".", size)},
      {"blanks.txt", repeated(" ", size) + "x"},
      {"lines.txt", repeated("\n", size) + "x"},
      {"spaces.txt", repeated("a" + repeated(" ", 3000), size / 3001)},
      {"braces.cpp", repeated("{", size)},
      {"parens.cpp", repeated("f(", size / 2)},
      {"classes.py",
       [] {
         std::string text;
         for (std::size_t depth = 0; text.size() < size; ++depth) text += std::string(depth % 1000, ' ') + "class A:\n";
         return text;
       }()},
      {"modifiers.ts", repeated("export ", size / 7)},
      {"quotes.py", repeated("\"\"\"", size / 3)},
      {"comments.c", repeated("/*\n", size / 3)}};
  for (const auto& [name, text] : hostile) {
    SCOPED_TRACE(name);
    (void)read_document(text, name, "")
        .ok();  // a quadratic pass takes a minute, and a recursive one overflows the stack
  }
}

}  // namespace muniment::retrieval
