// The text of an event of a run, as docs/format.md ("The text of an event") has it: the verifier's own reading.
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

bool is_readable(std::string_view type);  // has a text

struct RunText {
  std::string name;  // the document's title
  std::vector<std::string> tags;
  std::optional<std::string> text;  // as far as it is indexed; nullopt: a file of it cannot be read
  // Whether there may be no row although there is text: it is white space alone, or no plain text.
  bool may_lack_row() const;
};

Result<RunText> run_text(Connection& connection, const ArtifactRoot& root, std::string_view run_id,
                         std::string_view type, const json::Value& body);

}  // namespace muniment::verify
