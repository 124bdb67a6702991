#include "adapters/receive/trace_spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>

#include "adapters/import/otlp/otlp_value.hpp"
#include "adapters/import/records.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/json/readable_characters.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view file_suffix = ".jsonl";
constexpr std::string_view known_suffix = ".known";
constexpr std::size_t known_file_bytes_max = 64 * limits::otlp_trace_spans_max;
constexpr std::size_t trace_id_digits = 32;

std::uint64_t digest(std::string_view text) {
  const auto hash = sha256(text);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | hash[i];
  return number;
}

// A request whose characters that JSON refuses are found again in its bytes, so that the importer can replace and keep
// them.
class ReadRequest {
 public:
  static Result<ReadRequest> parse(std::string_view text) {
    ReadRequest request;
    request.text_ = std::make_unique<std::string>(text);
    auto document = json::parse(std::string_view(*request.text_));
    if (!document) {
      request.readable_ = std::make_unique<ReadableText>(with_readable_characters(text));
      auto readable = json::parse(std::string_view(request.readable_->text));
      if (!readable) return document.error();
      document = std::move(readable);
    }
    request.document_ = std::move(*document);
    const json::Value root = request.root();
    if (!root["resource_spans"] && !root["resource_logs"]) return request;
    const std::string camel = camel_case_json(root);
    return parse(camel);
  }

  json::Value root() const { return document_.root(); }

  // The bytes of a value on one line.
  std::string bytes(const json::Value& value) const {
    std::string_view source = value.source();
    if (readable_) {
      const auto begin = static_cast<std::size_t>(source.data() - readable_->text.data());
      const std::size_t from = readable_->source_offset(begin);
      source = std::string_view(*text_).substr(from, readable_->source_offset(begin + source.size()) - from);
    }
    std::string line(source);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return line;
  }

 private:
  std::unique_ptr<std::string> text_;
  std::unique_ptr<ReadableText> readable_;
  json::Document document_;
};

struct Names {
  const char* resources;
  const char* scopes;
  const char* items;
};

Names names_of(OtlpSignal signal) {
  return signal == OtlpSignal::traces ? Names{"resourceSpans", "scopeSpans", "spans"}
                                      : Names{"resourceLogs", "scopeLogs", "logRecords"};
}

void write_bytes(json::Writer& out, const ReadRequest& request, const json::Value& object, std::string_view without) {
  for (const json::Value member : object) {
    if (member.key() != without) out.raw_member(member.key(), request.bytes(member));
  }
}

// Calls `visit` with each item of a request, and `end_group` after each scope with the JSON before and after its items.
void for_each_item(OtlpSignal signal, const ReadRequest& request,
                   const std::function<void(const json::Value& item, const std::string& text)>& visit,
                   const std::function<void(const std::string& before, const std::string& after)>& end_group) {
  const Names names = names_of(signal);
  for (const json::Value resource : request.root()[names.resources]) {
    for (const json::Value scope : resource[names.scopes]) {
      for (const json::Value item : scope[names.items]) visit(item, request.bytes(item));
      json::Writer outer, inner;
      write_bytes(outer.begin_object(), request, resource, names.scopes);
      write_bytes(inner.begin_object(), request, scope, names.items);
      outer.key(names.scopes).begin_array();
      inner.key(names.items).begin_array();
      std::string before = outer.text() + inner.text();
      end_group(before, "]}]}");
    }
  }
}

std::uint64_t identity_of(OtlpSignal signal, const json::Value& item, std::string_view text) {
  return signal == OtlpSignal::traces ? digest("span " + otlp_id(item["spanId"], 8))
                                      : digest("log " + std::string(text));
}

bool is_root(OtlpSignal signal, const json::Value& item) {
  return signal == OtlpSignal::traces && otlp_id(item["parentSpanId"], 8).empty();
}

Status sync_folder(const std::string& folder) {
  ASSIGN_OR_RETURN(const Fd opened, open_folder(folder));
  if (::fsync(opened.get()) != 0) return file_error("syncing", folder, errno);
  return success();
}

// Appends a line, which is durable on return. After an error the file is as before.
Status append_line(const std::string& path, std::string_view line, std::size_t bytes_before) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file.get() < 0) return file_error("opening", path, errno);
  Status done = write_all(file.get(), line, path);
  if (done && ::fdatasync(file.get()) != 0) done = file_error("syncing", path, errno);
  if (!done && ::ftruncate(file.get(), static_cast<off_t>(bytes_before)) != 0)
    return file_error("shortening", path, errno);
  return done;
}

std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

TraceSpool::TraceSpool(std::string folder, TraceRules rules, const Clock& clock)
    : folder_(std::move(folder)), rules_(rules), clock_(clock) {}

Result<std::unique_ptr<TraceSpool>> TraceSpool::open(std::string folder, TraceRules rules, const Clock& clock) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return file_error("making", folder, failed.value());
  if (::chmod(folder.c_str(), 0700) != 0) return file_error("protecting", folder, errno);
  std::unique_ptr<TraceSpool> spool(new TraceSpool(std::move(folder), rules, clock));
  RETURN_IF_ERROR(spool->load());
  return spool;
}

std::string TraceSpool::path_of(const std::string& trace_id, std::uint64_t number) const {
  return fmt::format("{}/{}-{}{}", folder_, trace_id, number, file_suffix);
}

Status TraceSpool::load() {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename().string();
    const std::string id = name.substr(0, std::min(name.size(), trace_id_digits));
    const std::string_view rest = std::string_view(name).substr(id.size());
    if (rest == known_suffix) {
      RETURN_IF_ERROR(load_known(id));
      continue;
    }
    if (!rest.starts_with('-') || !rest.ends_with(file_suffix)) continue;
    const auto number = number_of(rest.substr(1, rest.size() - 1 - file_suffix.size()), 10);
    if (number) RETURN_IF_ERROR(load_file({id, *number, entry.path().string()}));
  }
  if (failed) return file_error("reading", folder_, failed.value());
  return success();
}

// A line that its process could not finish was not acknowledged.
Status TraceSpool::load_file(const CompleteTrace& file) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open_lines(file.path));
  Trace& trace = traces_[file.id];
  File loaded;
  loaded.last = trace.last = clock_.monotonic();
  while (reader.goes_on()) {
    const auto record = reader.next();
    if (!record || !*record) break;
    const std::size_t end = static_cast<std::size_t>((*record)->offset) + (*record)->text.size();
    const auto request = ReadRequest::parse((*record)->text);
    if (end >= static_cast<std::size_t>(reader.size()) || !request) break;
    for (const OtlpSignal signal : {OtlpSignal::traces, OtlpSignal::logs}) {
      for_each_item(
          signal, *request,
          [&](const json::Value& item, const std::string& text) {
            const bool is_new = trace.items.emplace(identity_of(signal, item, text), digest(text)).second;
            known_ += is_new ? 1 : 0;
            ++loaded.items;
            loaded.has_root = loaded.has_root || is_root(signal, item);
          },
          [](const std::string&, const std::string&) {});
    }
    loaded.bytes = end + 1;
  }
  if (loaded.bytes < static_cast<std::size_t>(reader.size()) &&
      ::truncate(file.path.c_str(), static_cast<off_t>(loaded.bytes)) != 0)
    return file_error("shortening", file.path, errno);
  trace.next = std::max(trace.next, file.number + 1);
  if (loaded.items == 0) return ::unlink(file.path.c_str()) == 0 ? success() : file_error("removing", file.path, errno);
  trace.open.emplace(file.number, loaded);
  ++open_;
  return success();
}

Status TraceSpool::load_known(const std::string& trace_id) {
  ASSIGN_OR_RETURN(const std::string text, read_file(known_path(trace_id), known_file_bytes_max));
  Trace& trace = traces_[trace_id];
  trace.last = clock_.monotonic();
  trace.next = std::max<std::uint64_t>(trace.next, 1);
  std::string_view rest(text);
  while (const auto line = take_line(rest)) {
    const std::size_t space = std::min(line->find(' '), line->size());
    const auto identity = number_of(line->substr(0, space), 16);
    const auto content = number_of(line->substr(std::min(space + 1, line->size())), 16);
    if (identity && content && trace.items.emplace(*identity, *content).second) ++known_;
  }
  return success();
}

Result<OtlpRefused> TraceSpool::add(OtlpSignal signal, std::string_view text) {
  ASSIGN_OR_RETURN(const ReadRequest request, ReadRequest::parse(text));
  const json::Value resources = request.root()[names_of(signal).resources];
  if (!request.root().is(json::Kind::object) || (resources.present() && !resources.is(json::Kind::array)))
    return Error(Errc::invalid_argument, fmt::format("expected an object with a list {}", names_of(signal).resources));
  const std::lock_guard lock(mutex_);
  Added added;
  std::map<std::string, std::string> lists;  // items of the current scope, by trace
  for_each_item(
      signal, request,
      [&](const json::Value& item, const std::string& bytes) { take_item(added, lists, signal, item, bytes); },
      [&](const std::string& before, const std::string& after) {
        for (const auto& [id, items] : lists) {
          std::string& groups = added.parts[id].groups;
          groups.append(groups.empty() ? "" : ",").append(before).append(items).append(after);
        }
        lists.clear();
      });
  const auto is_new = [&](const auto& part) {
    const auto trace = traces_.find(part.first);
    return !part.second.items.empty() && (trace == traces_.end() || trace->second.open.empty());
  };
  const auto opened = static_cast<std::size_t>(std::count_if(added.parts.begin(), added.parts.end(), is_new));
  if (open_ + opened > rules_.open_traces_max) {
    return Error(Errc::over_budget, fmt::format("over {} traces wait for their end. Send the request again later",
                                                rules_.open_traces_max));
  }
  for (const auto& [id, part] : added.parts) RETURN_IF_ERROR(store(id, signal, part));
  return std::move(added.refused);
}

void TraceSpool::take_item(Added& added, std::map<std::string, std::string>& lists, OtlpSignal signal,
                           const json::Value& item, const std::string& text) {
  const auto refuse = [&](std::string why) {
    ++added.refused.items;
    added.refused.why = std::move(why);
  };
  const std::string trace_id = otlp_id(item["traceId"], trace_id_digits / 2);
  if (trace_id.empty()) return refuse("the id of the trace is missing or invalid");
  if (signal == OtlpSignal::traces && otlp_id(item["spanId"], 8).empty())
    return refuse("the id of the span is missing or invalid");
  const std::uint64_t identity = identity_of(signal, item, text), content = digest(text);
  const auto known = traces_.find(trace_id);
  const bool is_open = known != traces_.end() && !known->second.open.empty();
  const File file = is_open ? known->second.open.rbegin()->second : File{};
  Part& part = added.parts[trace_id];
  const Items* const places[] = {known == traces_.end() ? nullptr : &known->second.items, &part.items};
  for (const Items* items : places) {
    if (items == nullptr) continue;
    const auto same = items->find(identity);
    if (same == items->end()) continue;
    if (same->second != content) refuse("another span with the id of this span was received before");
    return;
  }
  if (file.items + part.items.size() >= rules_.trace_spans_max)
    return refuse(fmt::format("the trace has over {} spans", rules_.trace_spans_max));
  std::string& list = lists[trace_id];
  if (file.bytes + part.groups.size() + list.size() + text.size() > limits::otlp_trace_bytes_max)
    return refuse(fmt::format("the trace has over {} bytes", limits::otlp_trace_bytes_max));
  list.append(list.empty() ? "" : ",").append(text);
  part.items.emplace(identity, content);
  part.has_root = part.has_root || is_root(signal, item);
}

Status TraceSpool::store(const std::string& trace_id, OtlpSignal signal, const Part& part) {
  Trace& trace = traces_[trace_id];
  trace.last = clock_.monotonic();
  if (part.items.empty()) return success();
  const bool is_new = trace.open.empty();
  const std::uint64_t number = is_new ? trace.next : trace.open.rbegin()->first;
  File file = is_new ? File{} : trace.open.rbegin()->second;
  const std::string line = fmt::format("{{\"{}\":[{}]}}\n", names_of(signal).resources, part.groups);
  RETURN_IF_ERROR(append_line(path_of(trace_id, number), line, file.bytes));
  if (is_new) RETURN_IF_ERROR(sync_folder(folder_));
  file.items += part.items.size();
  file.bytes += line.size();
  file.has_root = file.has_root || part.has_root;
  file.last = trace.last;
  trace.open[number] = file;
  trace.items.insert(part.items.begin(), part.items.end());
  known_ += part.items.size();
  if (!is_new) return success();
  ++trace.next;
  ++open_;
  return success();
}

std::vector<CompleteTrace> TraceSpool::take_complete(Complete which) {
  const std::lock_guard lock(mutex_);
  const Monotonic now = clock_.monotonic();
  std::vector<CompleteTrace> complete;
  for (auto& [id, trace] : traces_) {
    std::erase_if(trace.open, [&, name = id](const auto& entry) {
      const auto& [number, file] = entry;
      const bool is_complete = which == Complete::all || now - file.last >= rules_.unended ||
                               (file.has_root && (which == Complete::ended || now - file.last >= rules_.quiet));
      if (is_complete) complete.push_back({name, number, path_of(name, number)});
      return is_complete;
    });
  }
  open_ -= complete.size();
  forget_old(now);
  return complete;
}

Status TraceSpool::recorded(const CompleteTrace& trace) {
  const std::lock_guard lock(mutex_);
  std::string known;
  if (const auto found = traces_.find(trace.id); found != traces_.end()) {
    found->second.last = clock_.monotonic();
    for (const auto& [identity, content] : found->second.items)
      known += fmt::format("{:016x} {:016x}\n", identity, content);
  }
  RETURN_IF_ERROR(write_file_durably(known_path(trace.id), known));
  if (::unlink(trace.path.c_str()) != 0) return file_error("removing", trace.path, errno);
  return success();
}

void TraceSpool::refused(const CompleteTrace& trace) {
  std::error_code failed;
  fs::rename(trace.path, trace.path + ".refused", failed);
}

void TraceSpool::postponed(const CompleteTrace& trace) {
  const std::lock_guard lock(mutex_);
  File file;
  std::error_code failed;
  file.bytes = fs::file_size(trace.path, failed);
  file.has_root = true;
  file.last = clock_.monotonic();
  traces_[trace.id].open.emplace(trace.number, file);
  ++open_;
}

// Forgets the spans of recorded traces, the oldest first while too many are known.
void TraceSpool::forget_old(Monotonic now) {
  const auto forget = [&](std::map<std::string, Trace>::iterator trace) {
    known_ -= std::min(known_, trace->second.items.size());
    ::unlink(known_path(trace->first).c_str());
    return traces_.erase(trace);
  };
  for (auto trace = traces_.begin(); trace != traces_.end();) {
    const bool is_old = now - trace->second.last >= std::chrono::seconds(limits::otlp_known_seconds);
    trace = trace->second.open.empty() && is_old ? forget(trace) : std::next(trace);
  }
  while (known_ > limits::otlp_known_spans_max) {
    auto oldest = traces_.end();
    for (auto trace = traces_.begin(); trace != traces_.end(); ++trace) {
      if (trace->second.open.empty() && (oldest == traces_.end() || trace->second.last < oldest->second.last))
        oldest = trace;
    }
    if (oldest == traces_.end()) return;
    forget(oldest);
  }
}

std::size_t TraceSpool::open_traces() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

}  // namespace muniment::cli
