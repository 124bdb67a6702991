#include "client/hints.hpp"

#include <algorithm>
#include <utility>

#include "client/examples.hpp"

namespace muniment::cli {
namespace {

// Longer phrases precede shorter ones, because parameters of a request become options. A phrase with a capital letter
// replaces a whole sentence, because the command needs more words than the method name.
constexpr std::pair<std::string_view, std::string_view> method_commands[] = {
    {"Export the evidence again: evidence.export", "Export the evidence again: muniment evidence export EVIDENCE"},
    {"Open it first: task.open", "Open it first: muniment task open CONTENT --task TASK --run RUN"},
    {"Give a run_id", "Name one that is yours: --run RUN"},
    {"See: event.list with a run_id", "See: muniment event list --run RUN"},
    {"Start it: run.start", "See: muniment run list, or start it: muniment run start RUN --agent AGENT"},
    {"List it: evidence.list", "List it: muniment evidence list --run RUN"},
    {"List them: artifact.list", "List them: muniment artifact list --run RUN"},
    {"List them: claim.list", "List them: muniment claim list --run RUN"},
    {"Take one: snapshot.take", "Take one: muniment snapshot take RUN"},
    {"run.start, and name this one in `continues`", "muniment run start NAME --agent AGENT --continues THIS"},
    {"run.start and reopen: true", "muniment run start RUN --agent AGENT --reopen"},
    {"artifact.get", "muniment artifact get"},
    {"artifact.list", "muniment artifact list"},
    {"artifact.put", "muniment artifact put"},
    {"audit.redact", "muniment audit redact"},
    {"claim.list", "muniment claim list"},
    {"claim.record", "muniment claim record"},
    {"context.build", "muniment context"},
    {"corpus.ingest", "muniment ingest"},
    {"corpus.list", "muniment corpus list"},
    {"document.list", "muniment document list"},
    {"event.append", "muniment event append"},
    {"event.list", "muniment event list"},
    {"evidence.list", "muniment evidence list"},
    {"evidence.record", "muniment evidence add"},
    {"evidence.retrieve", "muniment query"},
    {"manifest.get", "muniment manifest show"},
    {"pointer.resolve", "muniment pointer resolve"},
    {"pointer.validate", "muniment pointer validate"},
    {"run.end", "muniment run end"},
    {"run.list", "muniment run list"},
    {"run.recover", "muniment recover"},
    {"run.rehydrate", "muniment rehydrate"},
    {"run.start", "muniment run start"},
    {"server.rebuild", "muniment rebuild"},
    {"server.status", "muniment status"},
    {"snapshot.list", "muniment snapshot list"},
    {"snapshot.take", "muniment snapshot take"},
};

constexpr std::string_view program_name = "muniment ";
constexpr std::string_view place_options[] = {" --data ", " --socket ", " --config "};

// Contexts in which the daemon's messages suggest a method. Elsewhere such a word is data of the caller: a run may be
// named run.list.
struct Place {
  std::string_view before;
  std::string_view after = "";
};
constexpr Place places[] = {
    {"List it: "},
    {"List the sources: "},
    {"` or ", ", and pass its id."},
    {"Check it with ", "."},
    {"Put it first: "},
    {"See: "},
    {"Record it there first: "},
    {"Read the others: "},
    {". Start it again with "},
    {". Start a run of another name with "},
    {". Send large content with "},
    {", or store it with ", " and "},
    {", or store the text with ", " and "},
    {", or store the rest with ", "."},
    {"large parts with ", "."},
    {"cursor: expected a cursor that ", " returned."},
    {"(", " takes many events)."},
    {"the next ", " or start: "},
};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '-'; }

// Returns whether the name ends here and is not the prefix of a longer one: run.start of run.started, log.x of log.x.y.
bool ends(std::string_view rest) {
  if (rest.empty()) return true;
  if (rest.front() == '.') return rest.size() == 1 || !is_word(rest[1]);
  return !is_word(rest.front());
}

bool is_advice(std::string_view before, std::string_view name, std::string_view after) {
  if (name.front() >= 'A' && name.front() <= 'Z') return ends(after) && before.ends_with(". ");
  return ends(after) && std::ranges::any_of(places, [&](const Place& place) {
           return before.ends_with(place.before) && after.starts_with(place.after);
         });
}

}  // namespace

std::string with_commands(std::string_view message) {
  std::string text;
  for (std::size_t at = 0; at < message.size();) {
    const std::string_view rest = message.substr(at);
    const auto* const found = std::ranges::find_if(method_commands, [&](const auto& one) {
      return rest.starts_with(one.first) && is_advice(message.substr(0, at), one.first, rest.substr(one.first.size()));
    });
    if (found == std::end(method_commands)) {
      text += message[at++];
      continue;
    }
    text += found->second;
    at += found->first.size();
  }
  return text;
}

std::string_view Advice::command_at(std::string_view text, std::size_t at) const {
  if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '.')) return {};  // a longer name or a path
  const std::string_view rest = text.substr(at + program_name.size());
  const std::string_view word = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  if (word == "help" || example_of(word).empty()) return {};  // no command
  const std::string_view command = rest.substr(0, rest.find_first_of("&;)\n"));
  const auto is_named_by = [command](std::string_view option) {
    return command.find(option) != std::string_view::npos;
  };
  return std::ranges::any_of(place_options, is_named_by) ? std::string_view() : word;
}

std::string Advice::with_place(std::string_view text) const {
  if (place_.empty() && to_start_.empty()) return std::string(text);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = text.find(program_name, at);
    if (found == std::string_view::npos) return out += text.substr(at);
    const std::size_t behind = found + program_name.size();
    out += text.substr(at, behind - at);
    if (const std::string_view command = command_at(text, found); !command.empty()) {
      const std::string& place = command == "up" ? to_start_ : place_;
      if (!place.empty()) out += place + " ";
    }
    at = behind;
  }
  return out;
}

}  // namespace muniment::cli
