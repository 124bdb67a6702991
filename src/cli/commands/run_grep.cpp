// Implements the commands run grep and artifact grep, which search for a pattern in one run or in all runs: in every
// string of the events, line by line, and in artifacts, read in pieces. Memory is bounded by a page of events and a
// line.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/connect/artifact_name.hpp"
#include "cli/show/line_match.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {
namespace {

// Part of a line; a blank that separates it from its neighbour is kept.
std::string piece(const Output& out, std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  std::string line = out.one_line(text);
  if (line.empty()) return text.empty() ? "" : " ";
  if (is_blank(text.front())) line.insert(0, " ");
  if (is_blank(text.back())) line.push_back(' ');
  return line;
}

constexpr std::size_t grep_piece_bytes = 1 << 20;     // bytes of an artifact per request
constexpr std::size_t grep_line_bytes_max = 1 << 20;  // a longer line is searched in pieces
constexpr std::int64_t artifact_bytes_grep_max = 256 << 20;
constexpr std::size_t binary_look_bytes = 8192;  // a NUL byte within these marks a binary file
constexpr std::size_t context_bytes = 60;        // bytes shown before a match in a long line
constexpr std::size_t shown_bytes_max = 240;

struct GrepOptions {
  std::vector<std::string> words;
  std::vector<std::string> types;
  std::size_t limit = 1000;
  bool all = false;
  bool ignore_case = false;
  bool literal = false;
  bool names_only = false;
  bool no_artifacts = false;
  bool no_events = false;
  std::string name;  // shell pattern for artifact names
};

void declare_search(CLI::App& command, GrepOptions& options) {
  command.add_option("RUN PATTERN", options.words, "Run and pattern (RE2 syntax); with --all only the pattern")
      ->required()
      ->expected(1, 2);
  command.add_flag("--all", options.all, "Search all runs, newest first");
  command.add_flag("-i,--ignore-case", options.ignore_case, "Ignore case");
  command.add_flag("-F,--fixed", options.literal, "Search for a fixed string instead of a regular expression");
  command.add_flag("-l,--runs", options.names_only, "Print only the ids of matching runs");
  command.add_option("-n,--limit", options.limit, "Maximum number of matches; 0: all")->capture_default_str();
}

void declare_grep(CLI::App& command, GrepOptions& options) {
  declare_search(command, options);
  command.add_option("--type", options.types, "Search only events of these types: tool.*, …")->allow_extra_args(false);
  command.add_flag("--no-artifacts", options.no_artifacts, "Search only events");
}

void declare_artifact_grep(CLI::App& command, GrepOptions& options) {
  declare_search(command, options);
  command.add_option("--name", options.name, "Search only artifacts whose name matches, such as '*.log'")
      ->type_name("PATTERN");
}

// Location of a line.
struct GrepPlace {
  std::string run_id;
  std::string seq;         // seq of the event, or of the artifact's event
  std::string what;        // the event's type, or "artifact"
  std::string path;        // JSON path in the body, or the artifact's id
  std::string name;        // name of the artifact, if any
  std::uint64_t line = 0;  // number of the line, from 1
};

class Grep {
 public:
  Grep(Session& session, const GrepOptions& options, LineMatch pattern)
      : session_(session),
        options_(options),
        pattern_(std::move(pattern)),
        left_(options.limit == 0 ? SIZE_MAX : options.limit) {}

  Status look_in_run(const std::string& run_id) {
    in_run_ = 0;
    if (!options_.no_events) RETURN_IF_ERROR(look_in_events(run_id));
    if (!options_.no_artifacts && !done()) RETURN_IF_ERROR(look_in_artifacts(run_id));
    return success();
  }

  bool done() const { return left_ == 0 || session_.out().failed() || (options_.names_only && in_run_ > 0); }
  bool finished() const { return left_ == 0 || session_.out().failed(); }
  std::size_t found() const { return found_; }

 private:
  Status look_in_events(const std::string& run_id) {
    json::Writer params;
    params.begin_object().member("run_id", run_id).member("limit", limits::page_items_max);
    if (!options_.types.empty()) params.member("types", options_.types);
    params.end_object();
    return each_item(session_, "event.list", params.text(), "events", [&](const json::Value& event) -> Result<bool> {
      GrepPlace place{run_id, std::string(event["seq"].source()), event["type"].string_or(""), "", "", 0};
      look_in_value(event["body"], place);
      return !done();
    });
  }

  // Searches strings unescaped and all other values as JSON text; the depth of a body is bounded.
  void look_in_value(const json::Value& value, GrepPlace& place) {
    const std::size_t length = place.path.size();
    if (value.is(json::Kind::object) || value.is(json::Kind::array)) {
      std::size_t index = 0;
      for (const json::Value item : value) {
        place.path += "/" + (value.is(json::Kind::object) ? item.key() : std::to_string(index++));
        look_in_value(item, place);
        place.path.resize(length);
        if (done()) return;
      }
      return;
    }
    const std::string text = value.as_string().value_or(std::string(value.source()));
    std::string_view rest = text;
    for (place.line = 1; !rest.empty() && !done(); ++place.line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      look_at_line(rest.substr(0, end), place);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  Status look_in_artifacts(const std::string& run_id) {
    const std::string params = "{\"run_id\":" + json::quote(run_id) + "}";
    return each_item(session_, "artifact.list", params, "artifacts", [&](const json::Value& artifact) -> Result<bool> {
      const bool left_out = is_erased_artifact(artifact) || !fits_name(artifact, options_.name);
      const Status status = left_out ? success() : look_in_artifact(run_id, artifact);
      // A damaged artifact is reported and the search continues. A listed artifact that is not found was erased after
      // the listing.
      if (!status && is_transient(status.error().code)) return status.error();
      if (!status && status.error().code != Errc::not_found)
        complain(artifact["artifact_id"].string_or("") + ": " + status.error().message);
      return !done();
    });
  }

  // The row of an erased artifact remains.
  static bool is_erased_artifact(const json::Value& artifact) {
    return artifact["hash"].string_or("").find_first_not_of('0') == std::string::npos;
  }

  Status look_in_artifact(const std::string& run_id, const json::Value& artifact) {
    const std::string id = artifact["artifact_id"].string_or("");
    GrepPlace place{run_id, std::string(artifact["seq"].source()), "artifact", id, name_of_artifact(artifact), 1};
    std::string line;
    std::int64_t offset = 0;
    for (bool more = true; more && !done();) {
      json::Writer params;
      params.begin_object()
          .member("artifact_id", id)
          .member("offset", offset)
          .member("length", grep_piece_bytes)
          .member("encoding", "raw");
      params.end_object();
      ASSIGN_OR_RETURN(const Message piece, session_.call("artifact.get", params.text()));
      if (offset == 0 && std::string_view(piece.raw).substr(0, binary_look_bytes).find('\0') != std::string_view::npos)
        return success();
      for (std::string_view rest = piece.raw; !rest.empty() && !done();) {
        const std::size_t end = rest.find('\n');
        line += rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (end == std::string_view::npos && line.size() < grep_line_bytes_max) break;
        look_at_line(line, place);
        line.clear();
        if (end != std::string_view::npos) ++place.line;
      }
      const auto next = piece.result()["next_offset"].as_int();
      more = next.has_value();
      offset = next.value_or(offset);
      if (more && offset >= artifact_bytes_grep_max) {
        complain(
            fmt::format("{}: only the first {} were searched", id, human_size(static_cast<std::uint64_t>(offset))));
        more = false;
      }
    }
    if (!line.empty() && !done()) look_at_line(line, place);
    return success();
  }

  void look_at_line(std::string_view line, const GrepPlace& place) {
    const auto span = pattern_.find(line);
    if (!span) return;
    ++found_;
    ++in_run_;
    --left_;
    if (session_.options.json) {
      print_json(line, *span, place);
    } else if (options_.names_only) {
      session_.out().line(session_.out().one_line(place.run_id));
    } else {
      print_line(line, *span, place);
    }
  }

  void print_json(std::string_view line, const LineMatch::Span& span, const GrepPlace& place) const {
    const bool artifact = place.what == "artifact";
    json::Writer out;
    out.begin_object().member("run_id", place.run_id).raw_member("seq", place.seq).member("type", place.what);
    out.member(artifact ? "artifact_id" : "path", place.path);
    if (!place.name.empty()) out.member("name", place.name);
    out.member("line", place.line);
    out.member("text", line.substr(0, grep_line_bytes_max))
        .member("begin", span.begin)
        .member("end", span.end)
        .end_object();
    session_.out().json_line(out.text());
  }

  // Returns the match with its context; a long line is shortened.
  void print_line(std::string_view line, const LineMatch::Span& span, const GrepPlace& place) const {
    const Output& out = session_.out();
    const std::size_t from =
        span.begin > context_bytes && line.size() > shown_bytes_max ? span.begin - context_bytes : 0;
    const std::size_t to = std::min(line.size(), std::max(from + shown_bytes_max, span.end));
    const std::string head = fmt::format("{:>8} {} {} ", place.seq, options_.all ? out.one_line(place.run_id) : "",
                                         out.one_line(place.what));
    out.line(out.tone(Tone::dim, head + out.one_line(place.path) +
                                     (place.name.empty() ? "" : " " + out.one_line(place.name)) +
                                     fmt::format(":{}  ", place.line)) +
             (from > 0 ? "…" : "") + piece(out, line.substr(from, span.begin - from)) +
             out.tone(Tone::red, piece(out, line.substr(span.begin, span.end - span.begin))) +
             piece(out, line.substr(span.end, to - std::min(to, span.end))) + (to < line.size() ? "…" : ""));
  }

  static void complain(const std::string& text) { fmt::print(stderr, "muniment: {}\n", escape_for_terminal(text)); }

  Session& session_;
  const GrepOptions& options_;
  const LineMatch pattern_;
  std::size_t left_;
  std::size_t found_ = 0;
  std::size_t in_run_ = 0;
};

Status look_in_all(Session& session, Grep& grep) {
  return each_item(session, "run.list", "{}", "runs", [&](const json::Value& run) -> Result<bool> {
    RETURN_IF_ERROR(grep.look_in_run(run["run_id"].string_or("")));
    return !grep.finished();
  });
}

// Returns the error for the run that was not found, with the right form if the pattern names a run instead.
Error unknown_run(Session& session, const GrepOptions& options, Error error) {
  if (error.code != Errc::not_found || options.words.size() != 2) return error;
  const auto swapped = session.run_id(options.words.back());
  if (!swapped || !session.call("run.get", "{\"run_id\":" + json::quote(*swapped) + "}")) return error;
  error.message += fmt::format(". The run precedes the pattern: muniment run grep {} {}",
                               shell_word(options.words.back()), shell_word(options.words.front()));
  return error;
}

Status grep_runs(Session& session, const GrepOptions& options) {
  if (options.all && options.words.size() == 2)
    return Error(Errc::invalid_argument, "expected RUN and PATTERN, or --all and PATTERN");
  ASSIGN_OR_RETURN(LineMatch pattern, LineMatch::compile(options.words.back(), options.ignore_case, options.literal));
  Grep grep(session, options, std::move(pattern));
  if (options.all) {
    RETURN_IF_ERROR(look_in_all(session, grep));
  } else {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.words.size() == 2 ? options.words.front() : ""));
    // Reports an unknown run, which otherwise would have no match.
    if (auto run = session.call("run.get", "{\"run_id\":" + json::quote(run_id) + "}"); !run)
      return unknown_run(session, options, std::move(run).error());
    RETURN_IF_ERROR(grep.look_in_run(run_id));
  }
  if (grep.finished())
    fmt::print(stderr, "muniment: stopped after {} matches; -n 0 shows all\n", grouped(grep.found()));
  if (grep.found() == 0) session.exit_code = exit_refused;
  return success();
}

Status grep_artifacts(Session& session, const GrepOptions& options) {
  GrepOptions in_artifacts = options;
  in_artifacts.no_events = true;
  return grep_runs(session, in_artifacts);
}

}  // namespace

void add_artifact_grep(CLI::App& artifact, Session& session) {
  add_command<GrepOptions>(session, artifact, "grep", "Search artifacts for a pattern (exit code 1: no match)",
                           declare_artifact_grep, grep_artifacts);
}

void add_run_grep(CLI::App& run, Session& session) {
  add_command<GrepOptions>(session, run, "grep", "Search events and artifacts for a pattern (exit code 1: no match)",
                           declare_grep, grep_runs);
}

}  // namespace muniment::cli
