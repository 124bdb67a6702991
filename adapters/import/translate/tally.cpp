#include "adapters/import/translate/tally.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "adapters/import/translate/coverage.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t tally_name_bytes_max = 64;

bool is_dialogue(const ImportedEvent& event, const json::Value& body) {
  if (event.type == "tool.called") return body["name"].string_or("unknown") != "unknown";
  if (event.type != "message.added" && event.type != "model.answered") return false;
  // Instrumentations may leave out the content of an answer.
  return body["content"].size() > 0 || !event.blobs.empty() || body["usage"].present();
}

}  // namespace

void ImportTally::add(const ImportedEvent& event) {
  if (event.type.starts_with("x.") && event.type.ends_with(".unreadable")) ++unreadable_;
  const bool is_rest = event.type.starts_with("x.") && event.type.ends_with(".source");
  const bool may_be_dialogue = !has_dialogue_ && !event.type.starts_with("x.");
  if (!is_rest && !may_be_dialogue && event.body.find("\"x_source\"") == std::string::npos) return;
  const auto document = json::parse(std::string_view(event.body));
  if (!document) return;
  const json::Value body = document->root();
  has_dialogue_ = has_dialogue_ || is_dialogue(event, body);
  keep(body["x_source"]);
  if (is_rest) keep(body["members"]);
}

void ImportTally::keep(const json::Value& object) {
  for (const json::Value member : object) {
    const std::uint64_t members = members_in(member);
    if (members == 0) continue;
    not_understood_ += members;
    std::string name = preview(member.key(), tally_name_bytes_max);
    if (std::ranges::find(names_, name) != names_.end()) continue;
    if (names_.size() < tally_names_max)
      names_.push_back(std::move(name));
    else
      more_names_ = true;
  }
}

void ImportTally::add(const ImportTally& other) {
  members_ += other.members_;
  not_understood_ += other.not_understood_;
  unreadable_ += other.unreadable_;
  has_dialogue_ = has_dialogue_ || other.has_dialogue_;
  more_names_ = more_names_ || other.more_names_;
  for (const std::string& name : other.names_) {
    if (std::ranges::find(names_, name) != names_.end()) continue;
    if (names_.size() < tally_names_max)
      names_.push_back(name);
    else
      more_names_ = true;
  }
}

void ImportTally::write(json::Writer& out) const {
  if (members_ > 0) out.member("members", static_cast<std::int64_t>(members_));
  if (not_understood_ == 0) return;
  out.key("not_understood").begin_object().member("count", static_cast<std::int64_t>(not_understood_));
  out.key("names").begin_array();
  for (const std::string& name : names_) out.string(name);
  out.end_array().end_object();
}

std::string ImportTally::sentence() const {
  if (members_ == 0 || not_understood_ == 0) return {};
  const std::string names = fmt::format("{}{}", fmt::join(names_, ", "), more_names_ ? ", …" : "");
  return fmt::format("imported {} of {} members; not understood: {}",
                     grouped(members_ - std::min(members_, not_understood_)), grouped(members_), names);
}

}  // namespace muniment::cli
