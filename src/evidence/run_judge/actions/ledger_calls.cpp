// Classifies calls by the words of their names, their paths, their statements and their command lines.
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "base/text.hpp"
#include "evidence/run_judge/actions/match.hpp"
#include "evidence/run_judge/bare_words.hpp"
#include "evidence/run_judge/words.hpp"
#include "evidence/shell/script.hpp"

namespace muniment::evidence::run_judge {
namespace {

constexpr std::string_view method_keys[] = {"method", "http_method", "verb"};
constexpr std::string_view order_keys[] = {
    "action", "operation", "op",       "operation_name", "tool",        "tool_name", "function", "endpoint",
    "path",   "url",       "resource", "object",         "object_type", "entity",    "sobject",  "table",
    "module", "type",      "kind",     "event",          "intent",      "mutation"};
constexpr std::string_view statement_keys[] = {"sql", "query", "statement", "queries", "soql", "graphql"};
constexpr std::string_view state_keys[] = {"status",     "state",      "new_status", "stage",
                                           "resolution", "transition", "decision"};

// Returns the effects of words of a name. The first verb that is no noun decides whether the call reads.
struct Named {
  Effects effects = 0;
  bool reads = false;
};

Named effects_of_words(const std::vector<std::string>& words) {
  Named named;
  bool strong = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "check" && i + 1 < words.size() && (words[i + 1] == "in" || words[i + 1] == "out")) {
      named.effects |= updates;
      strong = true;
      continue;
    }
    if (is_reading_verb(word) && !strong) return {0, true};
    const Effects one = effects_of_verb(word);
    if (one == 0) continue;
    named.effects |= one;
    strong = strong || !is_noun_too(word);
  }
  if (named.effects == 0) {
    for (const std::string& word : words) named.effects |= effects_of_noun(word) & ~creates;
  }
  return named;
}

void add_name_words(ToolCall& call, std::string_view text) {
  for (std::string& word : words_of(text)) {
    if (const int thing = thing_of(word); thing != 0) call.things.push_back(thing);
    call.words.push_back(std::move(word));
  }
}

bool is_money_key(std::string_view key) {
  static const Pattern money(
      R"((?:amount|price|total|cost|fee|fare|refund|charge|payment|paid|budget|value|balance|deposit|credit|discount)(?:_|$|usd|cents))");
  static const Pattern count(R"(bag|guest|passenger|night|count|items|seats|rows|records|pages)");
  return money.in(key) && !count.in(key);
}

bool is_id_key(std::string_view key) {
  static const Pattern id(
      R"((?:^|_)(?:id|ids|number|no|code|ref|reference|sha|hash|pr|key|uuid|locator|pnr|version|tag|branch)$|id$)");
  return id.in(key);
}

std::vector<Slot> slots_of(const std::vector<Scalar>& scalars) {
  std::vector<Slot> slots;
  for (const Scalar& scalar : scalars) {
    if (slots.size() >= slots_max) break;
    std::vector<Value> values = values_in(scalar.text);
    if (values.empty() && is_id_key(scalar.key) && !scalar.text.empty() && scalar.text.size() < 64) {
      Value value;
      value.type = Value::Type::id;
      value.text = plain(scalar.text).substr(1);
      value.text.pop_back();
      value.plain = plain(value.text);
      values.push_back(std::move(value));
    }
    for (Value& value : values) {
      if (value.type == Value::Type::number && is_id_key(scalar.key)) value.type = Value::Type::id;
      static const Pattern percent(R"(percent|pct)");
      if (value.type == Value::Type::number && percent.in(scalar.key)) value.type = Value::Type::percent;
      if (value.type == Value::Type::number && is_money_key(scalar.key)) {
        value.type = Value::Type::money;
        if (scalar.key.find("cents") != std::string::npos || scalar.key.find("minor") != std::string::npos)
          value.number /= 100;
      }
      slots.push_back({scalar.key, std::move(value)});
    }
  }
  return slots;
}

std::string pool_of(std::string_view name, const std::vector<Scalar>& scalars) {
  std::string pool = plain(name);
  for (const Scalar& scalar : scalars) {
    if (pool.size() > pool_bytes_max) break;
    pool += plain(scalar.key) + plain(scalar.text);
  }
  return pool;
}

// A statement of SQL begins with its verb; the statement of another language is a question.
Effects effects_of_statement(std::string_view statement) {
  static const Pattern insert(R"(\b(?:insert\s+into|create\s+table|merge\s+into|upsert)\b)");
  static const Pattern change(R"(\bupdate\s+[\w."`]+\s+set\b|\balter\s+table\b)");
  static const Pattern removal(R"(\b(?:delete\s+from|drop\s+table|truncate)\b)");
  static const Pattern mutation(R"(^\s*mutation\b)");
  Effects effects = 0;
  if (insert.in(statement)) effects |= creates | updates | sends | pays;
  if (change.in(statement)) effects |= updates | cancels | pays | merges;
  if (removal.in(statement)) effects |= cancels | updates;
  if (mutation.in(statement)) effects |= effects_of_words(words_of(statement)).effects;
  return effects;
}

// Returns the effects of an HTTP request: words of the path narrow those of the method.
Named effects_of_request(std::string_view method, const std::vector<std::string>& path) {
  if (method == "GET" || method == "HEAD" || method == "OPTIONS") return {0, true};
  Effects named = 0;
  for (const std::string& word : path) {
    named |= effects_of_verb(word);
    named |= effects_of_noun(word) & ~creates;
  }
  if (method == "POST") return {named | creates | (named == 0 ? updates | sends | pays : 0), false};
  if (method == "PUT" || method == "PATCH") return {named | updates | cancels | (method == "PUT" ? creates : 0), false};
  return {named | cancels, false};
}

void classify_line(ToolCall& call, std::string_view line, int depth) {
  constexpr std::size_t words_used = 4;
  static const Pattern http(R"(\b-X\s*['"]?(POST|PUT|PATCH|DELETE)\b|--request[ =]['"]?(POST|PUT|PATCH|DELETE)\b)");
  static const Pattern data(R"(\s(?:-d|--data(?:-raw|-binary)?|--json)[ =])");
  static const Pattern programs_that_read(
      R"(^(?:ls|cat|head|tail|grep|rg|find|pwd|cd|echo|wc|which|diff|stat|tree|less|more|sort|uniq|cut|env|date|jq|sleep|export|true|test|pytest|ctest|jest|vitest|mypy|ruff|flake8|eslint|tsc)$)");
  const shell::ShellScript script = shell::read_script(line.substr(0, shell_bytes_max));
  for (const shell::ScriptCommand& command : script.commands) {
    const std::vector<std::string> bare = bare_words(command.words);
    if (bare.empty()) continue;
    std::string joined;
    for (std::size_t i = 0; i < std::min(bare.size(), words_used); ++i) joined += bare[i] + " ";
    if (!command.written.empty()) call.effects |= creates | updates;
    const bool nested = bare.size() > 2 && (bare.front() == "bash" || bare.front() == "sh" || bare.front() == "zsh") &&
                        bare[1].starts_with("-") && bare[1].ends_with("c");
    if (nested && depth < 3) {
      classify_line(call, bare[2], depth + 1);
      continue;
    }
    if (programs_that_read.in(bare.front())) continue;
    static const Pattern git_reads(
        R"(^git\s+(?:\S+\s+)?(?:status|log|diff|show|branch|fetch|remote|rev-parse|ls-files|add|stash list)\b|^gh\s+\w+\s+(?:view|list|checks|status|diff)\b|^kubectl\s+(?:get|describe|logs|rollout\s+status)\b)");
    if (git_reads.in(joined)) continue;
    if (bare.front() == "curl" || bare.front() == "http" || bare.front() == "wget") {
      const auto method = http.find(line);
      if (!method && !data.in(line)) continue;
      const std::string name = method && !method->group.empty() ? std::string(method->group) : "POST";
      call.effects |= effects_of_request(name, words_of(line)).effects;
      continue;
    }
    static const Pattern database(R"(^(?:psql|sqlite3|mysql)\b)");
    if (database.in(joined)) {
      call.effects |= effects_of_statement(line);
      continue;
    }
    const Effects own =
        effects_of_words(words_of(joined)).effects | (bare.front() == "rm" ? cancels : 0) |
        (bare.front() == "mv" || bare.front() == "cp" || bare.front() == "sed" || bare.front() == "tee" ||
                 bare.front() == "touch"
             ? creates | updates
             : 0) |
        (joined.find("pr create") != std::string::npos ? pushes : 0) |
        (joined.starts_with("alembic") || joined.find(" migrate") != std::string::npos ? updates | deploys : 0);
    call.effects |= own;
    if (own == 0 && bare.front() != "git" && !effects_of_words(words_of(joined)).reads) call.opaque = true;
  }
}

}  // namespace

ToolCall tool_call(std::string_view name, const json::Value& arguments, std::string_view line, bool edits) {
  ToolCall call;
  call.name = std::string(name);
  call.edits = edits;
  Records records;
  add_scalars(call.arguments, records, arguments);
  call.slots = slots_of(call.arguments);
  call.pool = pool_of(name, call.arguments);
  add_name_words(call, name);
  if (!line.empty()) {
    call.shell = true;
    add_name_words(call, line.substr(0, 2'000));
    call.pool += plain(line.substr(0, pool_bytes_max));
    for (Value& value : values_in(line)) call.slots.push_back({"command", std::move(value)});
    call.things.clear();
    call.title = plain(joined(call.words, " "));
    classify_line(call, line, 0);
    for (const CheckRun& check : effects_of_line(line).checks) {
      if (check.check == Check::commit) call.effects |= commits;
      if (check.check == Check::push) call.effects |= pushes;
      if (check.check == Check::deploy) call.effects |= deploys;
      if (check.check == Check::install) call.effects |= installs | updates;
    }
    if (edits) call.effects |= creates | updates | cancels;
    return call;
  }
  Named named = effects_of_words(call.words);
  std::string method;
  Effects more = 0;
  for (const Scalar& scalar : call.arguments) {
    if (is_word_of(scalar.key, method_keys)) {
      method = scalar.text;
      for (char& c : method) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    if (is_word_of(scalar.key, order_keys)) add_name_words(call, scalar.text.substr(0, 200));
    if (is_word_of(scalar.key, statement_keys)) {
      const Effects statement = effects_of_statement(scalar.text);
      static const Pattern question(R"(^\s*(?:select|with|show|describe|explain|query|\{))");
      if (statement != 0) named = {statement, false};
      if (statement == 0 && question.in(scalar.text)) named = {0, true};
      add_name_words(call, scalar.text.substr(0, 200));
    }
    if (is_word_of(scalar.key, state_keys)) {
      for (const std::string& word : words_of(scalar.text.substr(0, 60))) more |= effects_of_verb(word);
    }
    for (const std::string& word : words_of(scalar.key)) {
      if (const int thing = thing_of(word); thing != 0) call.member_things.push_back(thing);
    }
  }
  call.title = plain(joined(call.words, " "));
  static const Pattern http_method(R"(^(?:GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE)$)", false);
  if (http_method.in(method)) {
    named = effects_of_request(method, call.words);
  } else if (named.effects == 0 && !named.reads) {
    named = effects_of_words(call.words);
  }
  call.effects = named.effects;
  if (named.effects != 0) call.effects |= more;
  call.opaque = named.effects == 0 && !named.reads;
  if (edits) call.effects |= creates | updates | cancels;
  if (call.effects != 0 || edits) call.opaque = false;
  return call;
}

namespace {

void add_hashes(std::vector<std::size_t>& hashes, std::string_view text) {
  for (std::size_t at = 1; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) hashes.push_back(std::hash<std::string_view>()(text.substr(at, end - at)));
    at = end + 1;
  }
}

std::size_t longest_list(const std::vector<Scalar>& scalars) {
  std::map<std::string_view, std::size_t> counts;
  std::size_t longest = 1;
  for (const Scalar& scalar : scalars) longest = std::max(longest, ++counts[scalar.key]);
  return longest;
}

}  // namespace

void Ledger::add(Action action) {
  static const Pattern undoing(R"(\b(?:cancel|delete|void|revoke|rollback|roll|revert|undo|reset|remove|refund)\b)");
  action.call.undoing = undoing.in(joined(action.call.words, " "));
  action.call.list = longest_list(action.call.arguments);
  ++calls_;
  action.slots = slots_of(action.scalars);
  if (action.pool.size() > pool_bytes_max) {
    forgot_ = true;
    action.pool.resize(pool_bytes_max);
  }
  std::string pool = pool_of("", action.scalars);
  if (pool.size() > pool_bytes_max) forgot_ = true;
  if (action.scalars.empty()) {
    for (Value& value : values_in(action.pool)) action.slots.push_back({"", std::move(value)});
  }
  action.pool = action.scalars.empty() ? plain(action.pool) : std::move(pool);
  action.payment = has_payment(action);
  action.targets = targets_of(action);
  add_hashes(action.words, action.call.pool);
  add_hashes(action.words, action.pool);
  std::sort(action.words.begin(), action.words.end());
  const bool reads = action.call.effects == 0 && !action.call.opaque;
  std::deque<Action>& kept = reads ? reads_ : actions_;
  kept.push_back(std::move(action));
  if (kept.size() > (reads ? reads_kept_max : actions_kept_max)) {
    kept.pop_front();
    forgot_ = true;
  }
}

void Ledger::add_user_text(std::string_view text) {
  user_text_ += plain(text.substr(0, pool_bytes_max));
  if (user_text_.size() > 4 * pool_bytes_max) {
    user_text_.erase(0, user_text_.size() - 4 * pool_bytes_max);
    forgot_ = true;
  }
}

}  // namespace muniment::evidence::run_judge
