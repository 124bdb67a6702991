// Finds the parts of a JSON-RPC message in its bytes, without the limits of the log's JSON: a proxy has to pass on and
// to answer what the log would refuse. Nothing here checks the grammar. Every result is a part of the text that was
// given, as it was written; of a duplicate member the last one counts, as in most parsers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::cli {

// Offset past the value that begins at `at`; text.size() where the text ends inside it.
std::size_t skip_value(std::string_view text, std::size_t at);
std::size_t skip_blanks(std::string_view text, std::size_t at);

// Calls `each` with every member of an object: the key with its quotes, and the value. A value that the text cuts off
// is left out.
void each_member(std::string_view object,
                 const std::function<void(std::string_view key, std::string_view value)>& each);
// A member's value; empty where there is none.
std::string_view member_of(std::string_view object, std::string_view key);
// The items of an array; none where it is no array.
std::vector<std::string_view> items_of(std::string_view array);

// The text of a JSON string; nullopt if the value is no string, or one that the log does not accept.
std::optional<std::string> string_of(std::string_view value);

struct Envelope {
  std::string_view id;  // empty: none; otherwise as it was written, "7" or "\"a\""
  std::string method;
  std::string_view params;
  std::string_view result;
  std::string_view error;

  bool is_request() const { return !method.empty() && has_id(); }
  bool is_response() const { return method.empty() && has_id() && (!result.empty() || !error.empty()); }
  bool has_id() const { return !id.empty() && id != "null"; }
};

Envelope skim_message(std::string_view message);

// The same text for every way of writing an id: 70, 70.0 and 7e1, "a" and "\u0061".
std::string id_key(std::string_view id);

// Is the line a JSON-RPC batch?
bool is_batch(std::string_view line);
// The messages of a line: of a batch its items, otherwise the line itself.
std::vector<std::string_view> messages_of(std::string_view line);

// The id of a message that is too long to be held, from its beginning and its end; empty where neither shows it.
std::string id_of_cut_message(std::string_view beginning, std::string_view end);

}  // namespace muniment::cli
