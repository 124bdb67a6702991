// Finds the parts of a JSON-RPC message in its bytes, without the limits of the log's JSON, because a proxy must
// forward and answer messages that the log would refuse. The grammar is not checked. Every result is an unchanged part
// of the input. Of duplicate members the last one counts, as in most parsers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::json {

// Returns the offset after the value that begins at `at`; text.size() if the text ends inside it.
std::size_t skip_value(std::string_view text, std::size_t at);
std::size_t skip_blanks(std::string_view text, std::size_t at);

// Calls `each` with every member of an object: the quoted key and the value. A truncated value is omitted.
void each_member(std::string_view object,
                 const std::function<void(std::string_view key, std::string_view value)>& each);
// Returns the value of a member; empty if absent.
std::string_view member_of(std::string_view object, std::string_view key);
// Returns the items of an array; empty if the value is not an array.
std::vector<std::string_view> items_of(std::string_view array);

// Returns the text of a JSON string; nullopt if the value is not a string or the log does not accept it.
std::optional<std::string> string_of(std::string_view value);

struct Envelope {
  std::string_view id;  // empty: none; otherwise unchanged, "7" or "\"a\""
  std::string method;
  std::string_view params;
  std::string_view result;
  std::string_view error;

  bool is_request() const { return !method.empty() && has_id(); }
  bool is_response() const { return method.empty() && has_id() && (!result.empty() || !error.empty()); }
  bool has_id() const { return !id.empty() && id != "null"; }
};

Envelope skim_message(std::string_view message);

// Returns the same text for all spellings of an id: 70, 70.0 and 7e1, "a" and "\u0061".
std::string id_key(std::string_view id);

// Returns whether the line is a JSON-RPC batch.
bool is_batch(std::string_view line);
// Returns the messages of a line: the items of a batch, otherwise the line itself.
std::vector<std::string_view> messages_of(std::string_view line);

// Returns the id of a message too long for memory from its beginning and end; empty if neither contains it.
std::string id_of_cut_message(std::string_view beginning, std::string_view end);

// Returns the id of a request as its sender wrote it, for the answer to a request that the log's JSON refuses. Empty if
// the message is no request, or if its id is not a string or a number.
std::string id_to_answer(std::string_view message);

}  // namespace muniment::json
