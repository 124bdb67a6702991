// Tables of extensions and mime types, and the detection of formats.
#include "retrieval/text/format.hpp"

#include <algorithm>
#include <optional>

#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {
namespace {

struct Known {
  std::string_view names;  // separated by spaces
  Format format;
};

constexpr Known by_extension[] = {
    {" txt text log rst adoc org tex srt vtt eml csv tsv diff patch ", Format::text},
    {" md markdown mdown mkd mdx rmd qmd ", Format::markdown},
    {" html htm xhtml ", Format::html},
    {" json geojson ipynb webmanifest traj ", Format::json},
    {" jsonl ndjson jsonlines ", Format::jsonl},
    {" pdf ", Format::pdf},
    {" c h cc cpp cxx hpp hxx hh inl ipp m mm cs java kt kts scala groovy swift go rs js mjs cjs jsx ts mts cts tsx vue svelte dart zig php css scss less "
     "proto thrift graphql glsl hlsl wgsl cu py pyi pyx rb rake lua pl pm sh bash zsh fish ps1 sql r jl ex exs erl hrl hs ml mli clj cljs lisp el scm nim v sv "
     "vhd vhdl f90 f95 pas d asm s bat cmake make mk makefile gnumakefile dockerfile meson.build cmakelists.txt gemfile rakefile jenkinsfile justfile nix tf hcl "
     "yaml yml toml ini cfg conf properties xml xsd svg gradle ",
     Format::code},
};

constexpr Known by_mime_type[] = {
    {" text/markdown text/x-markdown ", Format::markdown},
    {" text/html application/xhtml+xml ", Format::html},
    {" application/json text/json ", Format::json},
    {" application/jsonl application/x-ndjson application/ndjson application/json-lines application/x-jsonlines ",
     Format::jsonl},
    {" application/pdf ", Format::pdf},
    {" application/javascript text/javascript application/typescript application/sql application/x-sh text/css text/x-c text/x-c++ text/x-python text/x-script.python "
     "text/x-java text/x-go text/x-rust text/x-ruby text/x-shellscript application/xml text/xml application/yaml application/x-yaml application/toml ",
     Format::code},
};

template <std::size_t size>
std::optional<Format> look_up(const Known (&known)[size], std::string_view name) {
  if (name.find(' ') != std::string_view::npos) return std::nullopt;
  for (const Known& row : known) {
    if (is_listed(row.names, name)) return row.format;
  }
  return std::nullopt;
}

bool begins_like_html(std::string_view text) {
  const std::string start = lower_ascii(trimmed(text.substr(0, 512)));
  return start.starts_with("<!doctype html") || start.starts_with("<html") ||
         (start.starts_with("<?xml") && start.find("<html") != std::string::npos);
}

// Requires two Markdown marks at line beginnings: a heading, a fence, a link, a table's rule.
bool looks_like_markdown(std::string_view text) {
  int headings = 0, others = 0;
  Lines lines(text, {0, std::min<std::size_t>(text.size(), 16 * 1024)});
  while (const auto line = lines.next()) {
    const std::string_view content = piece_of(text, *line);
    const std::size_t level = std::min(content.find_first_not_of('#'), content.size());
    headings += level > 0 && level <= 6 && content.size() > level + 1 && content[level] == ' ';
    others += content.starts_with("```") || content.starts_with("- ") || content.starts_with("* ") ||
              content.starts_with("|--") || content.starts_with("| --") || content.find("](") != std::string_view::npos;
  }
  return headings > 0 && headings + others > 1 && !text.starts_with("#!");
}

Format by_content(std::string_view text) {
  const std::string_view content = trimmed(text);
  if (begins_like_html(content)) return Format::html;
  if (content.starts_with('{') || content.starts_with('[')) {
    if (is_json(text)) return Format::json;
    if (is_jsonl(text)) return Format::jsonl;
  }
  if (content.starts_with("#!")) return Format::code;
  return looks_like_markdown(content) ? Format::markdown : Format::text;
}

}  // namespace

bool is_pdf(std::string_view bytes, std::string_view name, std::string_view mime_type) {
  if (bytes.starts_with("%PDF-")) return true;
  const bool called = extension_of(name) == "pdf" || mime_type.starts_with("application/pdf");
  return called && bytes.substr(0, 1024).find("%PDF-") != std::string_view::npos;
}

std::string extension_of(std::string_view name) {
  const std::string base = lower_ascii(name.substr(name.rfind('/') + 1));
  if (look_up(by_extension, base)) return base;  // Makefile, CMakeLists.txt
  const std::size_t dot = base.rfind('.');
  return dot == std::string::npos ? std::string() : base.substr(dot + 1);
}

Format format_of(std::string_view text, std::string_view name, std::string_view mime_type) {
  std::optional<Format> said = look_up(by_extension, extension_of(name));
  if (!said) said = look_up(by_mime_type, lower_ascii(trimmed(mime_type.substr(0, mime_type.find(';')))));
  if (!said || *said == Format::pdf) return by_content(text);
  if (*said == Format::json && !is_json(text)) return is_jsonl(text) ? Format::jsonl : Format::text;
  if (*said == Format::jsonl && !is_jsonl(text)) return is_json(text) ? Format::json : Format::text;
  return *said;
}

std::string mime_type_of(Format format) {
  switch (format) {
    case Format::text: return "text/plain";
    case Format::markdown: return "text/markdown";
    case Format::code: return "text/x-source";
    case Format::html: return "text/html";
    case Format::json: return "application/json";
    case Format::jsonl: return "application/jsonl";
    case Format::pdf: return "application/pdf";
  }
  return "application/octet-stream";
}

}  // namespace muniment::retrieval
