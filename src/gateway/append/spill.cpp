// Moves long content of event bodies into artifacts, and stores these.
#include "gateway/append/spill.hpp"

#include <algorithm>
#include <array>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "events/catalogue.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/artifact_rows.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {
namespace {

// Size limits, tried in this order until the body fits.
constexpr std::array<std::size_t, 3> string_bytes_max = {limits::spill_part_bytes_max, 2'048, 640};

// Returns the beginning of the text, cut between characters.
std::string preview_of(std::string_view text, std::size_t bytes_max) {
  std::string_view cut = text.substr(0, bytes_max);
  const std::size_t bad = first_invalid_utf8(cut);
  return std::string(cut.substr(0, bad));
}

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

// Members of the core types that are a list of content parts.
bool is_content(std::string_view name, const json::Value& value) {
  return (name == "content" || name == "summary") && value.is(json::Kind::array);
}

// The name of the payload member of a part, and of an event that may hold a reference in its place; "" if there is
// none.
std::string_view payload_of(std::string_view part_type) {
  if (part_type == "text" || part_type == "reasoning") return "content";
  if (part_type == "tool_call") return "arguments";
  if (part_type == "tool_call_response") return "response";
  return "";
}
std::string_view referable_member(std::string_view event_type) {
  if (event_type == "tool.called") return "arguments";
  if (event_type == "state.patched") return "patch";
  if (event_type == "step.ended") return "result";
  return "";
}

class Spiller {
 public:
  Spiller(const store::Run& run, std::string_view step_id, std::string_view type, std::size_t event, Time now,
          Spilled& spilled)
      : run_(run),
        step_id_(step_id.empty() ? default_step : step_id),
        type_(type),
        event_(event),
        now_(now),
        spilled_(spilled),
        core_(events::find_type(type) != nullptr) {}

  // If `anywhere` is set, also spills long strings outside of content parts.
  std::string rewrite(const json::Value& body, std::size_t bytes_max, bool anywhere) {
    bytes_max_ = bytes_max;
    anywhere_ = anywhere;
    parts_.clear();
    json::Writer out;
    out.begin_object();
    for (const json::Value member : body) {
      const std::string name = member.key();
      const std::string path = "/" + pointer_token(name);
      if (core_ && is_content(name, member)) {
        out.key(name);
        write_parts(out, member, path);
      } else if (name == referable_member(type_) && too_long(member)) {
        out.key("ref");
        write_ref(out, member, path, json::Value());
      } else if (type_ == "file.changed" && name == "diff" && member.is(json::Kind::string) && too_long(member)) {
        out.key(name);
        write_ref(out, member, path, json::Value());
      } else {
        out.key(name);
        write_plain(out, member, path);
      }
    }
    out.end_object();
    return std::move(out).text();
  }

  std::vector<Spilled::Part> take_parts() { return std::move(parts_); }

 private:
  // Measures the body's own bytes if the body must shrink; otherwise the value's content, without quotes and escapes.
  bool too_long(const json::Value& value) const {
    if (value.source().size() <= bytes_max_) return false;
    return anywhere_ || !value.is(json::Kind::string) || value.as_string()->size() > bytes_max_;
  }

  // A smaller limit gets a shorter preview; otherwise the reference would be as long as the text it replaces.
  std::size_t preview_bytes_max() const { return std::min(limits::preview_bytes_max, bytes_max_ / 16); }

  void write_parts(json::Writer& out, const json::Value& parts, const std::string& path) {
    out.begin_array();
    std::size_t index = 0;
    for (const json::Value part : parts) {
      const std::string place = path + "/" + std::to_string(index++);
      const std::string_view payload = payload_of(part["type"].string_or(""));
      if (!payload.empty() && part[payload] && too_long(part[payload])) {
        write_ref(out, part[payload], place, part);
      } else {
        write_plain(out, part, place);
      }
    }
    out.end_array();
  }

  // Writes the value unchanged, except for long strings if the body has no room for them. In a core type, a string is
  // replaced by the artifact's pointer, also a string, as its schema requires.
  void write_plain(json::Writer& out, const json::Value& value, const std::string& path) {
    const bool short_enough = !anywhere_ || !too_long(value);
    if (short_enough || value.is(json::Kind::number)) {
      out.raw(value.source());
    } else if (value.is(json::Kind::string)) {
      if (!core_) return write_ref(out, value, path, json::Value());
      const Spilled::Part part = keep(value, path);
      out.string(artifact_pointer(run_.run_id, part.artifact_id));
    } else if (value.is(json::Kind::object)) {
      out.begin_object();
      for (const json::Value member : value) {
        out.key(member.key());
        write_plain(out, member, path + "/" + pointer_token(member.key()));
      }
      out.end_object();
    } else {
      out.begin_array();
      std::size_t index = 0;
      for (const json::Value item : value) write_plain(out, item, path + "/" + std::to_string(index++));
      out.end_array();
    }
  }

  // Writes the reference that replaces a value; for a content part it keeps type, id and name.
  void write_ref(json::Writer& out, const json::Value& value, const std::string& path, const json::Value& part) {
    const Spilled::Part kept = keep(value, path);
    const std::string text = value.as_string().value_or(std::string(value.source()));
    out.begin_object()
        .member("artifact_id", kept.artifact_id.text())
        .member("hash", to_hex(kept.hash))
        .member("size_bytes", kept.size_bytes)
        .member("mime_type", mime_of(value))
        .member("preview", preview_of(text, preview_bytes_max()));
    for (const char* name : {"type", "id", "name"}) {
      if (part[name]) out.raw_member(name, part[name].source());
    }
    out.end_object();
  }

  static std::string_view mime_of(const json::Value& value) {
    return value.is(json::Kind::string) ? "text/plain" : "application/json";
  }

  // Keeps the value's content once for equal bytes: the text of a string, the JSON of any other value.
  Spilled::Part keep(const json::Value& value, const std::string& path) {
    std::string bytes = value.as_string().value_or(std::string(value.source()));
    Spilled::Part part{event_, {}, sha256(bytes), static_cast<std::int64_t>(bytes.size()), path};
    const auto mine = std::ranges::find_if(spilled_.contents, [&](const Spilled::Content& known) {
      return known.hash == part.hash && known.step_id == step_id_;
    });
    if (mine != spilled_.contents.end()) {
      part.artifact_id = mine->artifact_id;
    } else {
      part.artifact_id = make_uuid_v7(now_);
      spilled_.contents.push_back(
          {event_, part.artifact_id, part.hash, step_id_, std::string(mime_of(value)), std::move(bytes)});
    }
    parts_.push_back(part);
    return part;
  }

  const store::Run& run_;
  const std::string step_id_;
  const std::string_view type_;
  const std::size_t event_;
  const Time now_;
  Spilled& spilled_;
  const bool core_;
  std::size_t bytes_max_ = 0;
  bool anywhere_ = false;
  std::vector<Spilled::Part> parts_;
};

std::vector<Spilled::Part*> parts_of(Spilled& spilled, std::size_t event) {
  std::vector<Spilled::Part*> parts;
  for (Spilled::Part& part : spilled.parts) {
    if (part.event == event) parts.push_back(&part);
  }
  return parts;
}

// Replaces every `from` in the text. Only the spiller can have written an id that it has just made.
void replace_id(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Returns the ids in `known` at the places where `fresh` has the ids of `parts`; nullopt if the bodies differ
// elsewhere.
std::optional<std::vector<Uuid>> ids_in(const std::string& known, const std::string& fresh,
                                        const std::vector<Spilled::Part*>& parts) {
  std::string text = fresh;
  std::vector<Uuid> ids;
  for (const Spilled::Part* part : parts) {
    const std::string ours = part->artifact_id.text();
    const std::size_t at = fresh.find(ours);
    if (at == std::string::npos || at + ours.size() > known.size()) return std::nullopt;
    const auto theirs = parse_uuid(known.substr(at, ours.size()));
    if (!theirs) return std::nullopt;
    replace_id(text, ours, theirs->text());
    ids.push_back(*theirs);
  }
  if (text != known) return std::nullopt;
  return ids;
}

// Replaces references to the content `ours` by the artifact that already holds it.
void refer_to(const Uuid& there, const Uuid& ours, std::vector<events::NewEvent>& events, Spilled& spilled) {
  for (Spilled::Part& part : spilled.parts) {
    if (part.artifact_id != ours) continue;
    part.artifact_id = there;
    replace_id(events[part.event].body, ours.text(), there.text());
    events::seal(events[part.event]);
  }
}

}  // namespace

bool may_spill(const json::Value& body) { return body.source().size() > limits::spill_part_bytes_max; }

Result<std::string> spill_body(const store::Run& run, std::string_view step_id, std::string_view type,
                               const json::Value& body, std::size_t event, Time now, Spilled& spilled) {
  Spiller spiller(run, step_id, type, event, now, spilled);
  std::string text = spiller.rewrite(body, limits::spill_part_bytes_max, false);
  for (const std::size_t bytes_max : string_bytes_max) {
    if (text.size() <= limits::event_body_bytes_max) break;
    text = spiller.rewrite(body, bytes_max, true);
  }
  RETURN_IF_ERROR(events::check_body_size(text.size(), "body with its long strings spilled",
                                          "Send it as several events, or store it with artifact.put and refer to it."));
  for (Spilled::Part& part : spiller.take_parts()) spilled.parts.push_back(std::move(part));
  return text;
}

Status refer_as_recorded(Call& call, const store::Run& run, std::vector<events::NewEvent>& events, KnownEvents& known,
                         Spilled& spilled) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::vector<Spilled::Part*> parts = parts_of(spilled, i);
    if (parts.empty() || !known[i]) continue;
    // Reads the event with its body.
    ASSIGN_OR_RETURN(known[i], call.reader->event_by_id(run.view().run_no, events[i].event_id));
    if (!known[i] || !known[i]->body) continue;
    const std::string& body = *known[i]->body;
    const auto ids = ids_in(body, events[i].body, parts);
    if (!ids) continue;
    bool same = true;
    for (std::size_t k = 0; same && k < parts.size(); ++k) {
      // A recorded body that refers to the content contains its hash.
      if (body.find(to_hex(parts[k]->hash)) != std::string::npos) continue;
      ASSIGN_OR_RETURN(const auto row, call.reader->artifact((*ids)[k]));
      same = row && row->run_id == run.run_id && row->hash == parts[k]->hash;
    }
    if (!same) continue;
    events[i].body = body;
    for (std::size_t k = 0; k < parts.size(); ++k) parts[k]->artifact_id = (*ids)[k];
  }
  return success();
}

Status store_contents(Call& call, const store::Run& run, std::vector<events::NewEvent>& events, Spilled& spilled) {
  const Status stored = [&]() -> Status {
    RETURN_IF_ERROR(check_open(run));
    for (const Spilled::Content& content : spilled.contents) {
      std::optional<store::ArtifactRow> there;
      if (run.maybe_stored(content.step_id, content.hash)) {
        ASSIGN_OR_RETURN(there, call.reader->artifact_with_hash(run.run_id, content.step_id, content.hash));
      }
      if (there) {
        refer_to(there->artifact_id, content.artifact_id, events, spilled);
        continue;
      }
      ASSIGN_OR_RETURN(store::StoredFile file, call.services.files.store(content.bytes, run.run_id, content.step_id,
                                                                         content.artifact_id, content.mime_type));
      const store::ArtifactRow row = store::artifact_row(file, run.run_id, content.step_id, content.mime_type, "{}");
      spilled.artifacts.push_back({content.event, row, std::move(file)});
    }
    return success();
  }();
  if (!stored) abandon(spilled, call.services.files);
  spilled.contents.clear();  // the contents are large and no longer needed
  return stored;
}

std::string spilled_json(const Spilled& spilled, std::size_t event) {
  json::Writer out;
  out.begin_array();
  bool any = false;
  for (const Spilled::Part& part : spilled.parts) {
    if (part.event != event) continue;
    any = true;
    out.begin_object()
        .member("artifact_id", part.artifact_id.text())
        .member("hash", to_hex(part.hash))
        .member("size_bytes", part.size_bytes)
        .member("path", part.path)
        .end_object();
  }
  out.end_array();
  return any ? ",\"spilled\":" + out.text() : std::string();
}

void abandon(const Spilled& spilled, store::ArtifactFiles& files) {
  for (const Spilled::Artifact& artifact : spilled.artifacts) files.abandon(artifact.file);
}

}  // namespace muniment::gateway
