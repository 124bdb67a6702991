#include "cli/hints.hpp"

#include <algorithm>
#include <utility>

namespace muniment::cli {
namespace {

// The longer ones first: what takes parameters in a request takes options here.
constexpr std::pair<std::string_view, std::string_view> commands[] = {
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

// Where the daemon's messages name a method as what to do. What stands elsewhere was sent: a run may be called run.list.
struct Place {
  std::string_view before;
  std::string_view after = "";
};
constexpr Place places[] = {
    {"Start it: "}, {"List it: "}, {"List them: "}, {"Put it first: "}, {"Take one: "}, {"See: "}, {"Record it there first: "}, {"Read the others: "},
    {". Start it again with "}, {". Start a run of another name with "}, {". Send large content with "},
    {", or ", " and "}, {", or ", " the "}, {", or ", " what "}, {". ", " names "},
    {"cursor: not one that ", " answered."}, {"(", " takes many events)."}, {"the next ", " or start: "},
};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '-'; }

// Whether a name that ends here is not the beginning of a longer one: run.start of run.started, log.x of log.x.y.
bool ends(std::string_view rest) {
  if (rest.empty()) return true;
  if (rest.front() == '.') return rest.size() == 1 || !is_word(rest[1]);
  return !is_word(rest.front());
}

bool is_advice(std::string_view before, std::string_view after) {
  return ends(after) && std::ranges::any_of(places, [&](const Place& place) { return before.ends_with(place.before) && after.starts_with(place.after); });
}

}  // namespace

std::string with_commands(std::string_view message) {
  std::string text;
  for (std::size_t at = 0; at < message.size();) {
    const std::string_view rest = message.substr(at);
    const auto* const found = std::ranges::find_if(commands, [&](const auto& one) {
      return rest.starts_with(one.first) && is_advice(message.substr(0, at), rest.substr(one.first.size()));
    });
    if (found == std::end(commands)) {
      text += message[at++];
      continue;
    }
    text += found->second;
    at += found->first.size();
  }
  return text;
}

}  // namespace muniment::cli
