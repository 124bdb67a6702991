// Derives the text of an event of a run (docs/format.md, The text of an event) without the writer's code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "verify/files/artifact_root.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

inline constexpr std::string_view run_corpus = "run";

bool is_readable(std::string_view type);  // whether events of this type have a text

struct RunText {
  std::string name;  // the document's title
  std::vector<std::string> tags;
  std::optional<std::string> text;  // the indexed part; nullopt: one of its files cannot be read
  // Returns whether the row may be absent although text exists: the text is only white space, or not plain text.
  bool may_lack_row() const;
};

Result<RunText> run_text(Connection& connection, const ArtifactRoot& root, std::string_view run_id,
                         std::string_view type, const json::Value& body);

}  // namespace muniment::verify
