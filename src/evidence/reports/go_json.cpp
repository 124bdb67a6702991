// Reads the events of `go test -json`: one JSON object on each line. Other lines are output of the build.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "evidence/reports/formats.hpp"
#include "evidence/reports/go_tests.hpp"
#include "evidence/reports/lines.hpp"
#include "evidence/reports/tally.hpp"

namespace muniment::evidence::reports {
namespace {

class GoEvents {
 public:
  explicit GoEvents(Report& report) : report_(report) {}

  void read(const json::Value& event) {
    const std::string action = event["Action"].string_or(""), name = event["Package"].string_or("");
    if (name.empty() || action.starts_with("build-")) return;
    const bool ends = action == "pass" || action == "fail" || action == "skip";
    const auto test = event["Test"].as_string();
    if (ends && !test) {
      const bool unbuilt = event["FailedBuild"].present();
      GoPackage closed = std::move(open_[name]);
      open_.erase(name);
      ++closed_;
      if (action == "pass" && closed.empty() && !without_tests_.contains(name)) ++report_.packages;
      closed.close(unbuilt ? name + " [build failed]" : name, action != "fail", report_);
      return;
    }
    GoPackage& package = open_[name];
    if (action == "run" && test) package.begin(*test);
    if (action == "output" && !test && event["Output"].string_or("").find("[no test") != std::string::npos)
      without_tests_.insert(name);
    if (ends)
      package.end(*test,
                  action == "pass"   ? Outcome::passed
                  : action == "fail" ? Outcome::failed
                                     : Outcome::skipped,
                  report_);
  }

  void finish() {
    report_.listed = true;
    report_.complete = closed_ > 0 && open_.empty() && report_.problem.empty();
  }

 private:
  Report& report_;
  std::map<std::string, GoPackage> open_;
  std::set<std::string> without_tests_;
  std::int64_t closed_ = 0;
};

// Identifies an event by the members that Go writes first. Other JSON is output of the build.
bool is_event(std::string_view line) {
  return line.starts_with("{\"Time\":\"") || line.starts_with("{\"Action\":\"") ||
         line.starts_with("{\"ImportPath\":\"");
}

}  // namespace

bool recognises_go_json(std::string_view text) {
  return any_line(text, [](std::string_view line) {
    return is_event(line) && line.find("\"Action\":\"") != std::string_view::npos &&
           line.find("\"Package\":\"") != std::string_view::npos;
  });
}

Result<Report> parse_go_json(std::string_view text) {
  Report report;
  GoEvents events(report);
  Lines lines(text);
  while (const auto line = lines.next()) {
    if (!is_event(*line)) continue;
    if (line->size() > json_report_bytes_max) {
      note_problem(report, "an event has " + human_size(line->size()) + "; at most " +
                               human_size(json_report_bytes_max) + " are read of one");
      continue;
    }
    const auto document = json::parse(*line);
    if (document)
      events.read(document->root());
    else
      note_problem(report, "an event is damaged: " + document.error().message);
  }
  events.finish();
  return report;
}

}  // namespace muniment::evidence::reports
