#include "cli/export/rows.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/json/json_walk.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

// The epoch of Postgres timestamps is 2000-01-01.
constexpr std::int64_t postgres_epoch_micros = 946'684'800'000'000;
constexpr std::string_view csv_heading =
    "seq,log_id,run_no,run_id,run_seq,recorded_at,occurred_at,origin,type,schema_version,step_id,actor,event_id,body_hash,salt,"
    "run_hash,body\n";

// A line of JSONL begins with the seq, followed by the log.
constexpr std::string_view json_opening = "{\"seq\":";
constexpr std::string_view json_log = ",\"log_id\":\"";
constexpr std::size_t uuid_text_bytes = 36;

enum Column : std::size_t {
  seq,
  run_no,
  run_seq,
  recorded_at,
  occurred_at,
  origin,
  type,
  schema_version,
  step_id,
  actor,
  event_id,
  body_hash,
  salt,
  run_hash,
  body,
  column_count
};

void append_number(std::string& out, std::int64_t value) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void append_hex(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char byte : bytes) {
    const auto value = static_cast<std::uint8_t>(byte);
    out.push_back(digits[value >> 4]);
    out.push_back(digits[value & 15]);
  }
}

void append_uuid(std::string& out, std::string_view bytes) {
  if (bytes.size() != 16) return;
  for (const auto& [begin, size] : {std::pair<std::size_t, std::size_t>{0, 4}, {4, 2}, {6, 2}, {8, 2}, {10, 6}}) {
    if (begin > 0) out.push_back('-');
    append_hex(out, bytes.substr(begin, size));
  }
}

void append_time(std::string& out, std::string_view bytes) {
  out += format_time({export_integer(bytes) + postgres_epoch_micros});
}

std::string_view origin_name(std::int64_t value) {
  constexpr std::string_view names[] = {"unknown", "observed", "reported", "imported"};
  return names[value >= 1 && value <= 3 ? value : 0];
}

// RFC 4180: a field with a comma, a quote or a line break is quoted.
void append_cell(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out.push_back('"');
  for (;;) {
    const std::size_t quote = text.find('"');
    out += text.substr(0, quote);
    if (quote == std::string_view::npos) break;
    out += "\"\"";
    text.remove_prefix(quote + 1);
  }
  out.push_back('"');
}

}  // namespace

Status fill_archived(ExportFields& fields, ExportArchive& archive,
                     const std::function<Result<bool>(std::int64_t)>& is_erased) {
  if (fields.size() != column_count || !fields[Column::salt] || fields[Column::body]) return success();
  const std::int64_t number = export_integer(fields[Column::seq].value_or(""));
  ASSIGN_OR_RETURN(const ArchivedBody* const found, archive.find(number));
  if (found == nullptr) {  // erased after the row was read, or removed by a third party
    ASSIGN_OR_RETURN(const bool erased, is_erased(number));
    if (!erased)
      return Error(
          Errc::corrupt,
          fmt::format("the archive has no body of event {}, which was not erased: run muniment-verify", number));
    fields[Column::salt].reset();
    return success();
  }
  if (view(sha256({*fields[Column::salt], found->body})) != fields[Column::body_hash]) {
    return Error(Errc::corrupt,
                 fmt::format("the archived body of event {} does not match its hash: run muniment-verify", number));
  }
  fields[Column::body] = found->body;
  return success();
}

std::string_view export_beginning(ExportForm form) { return form == ExportForm::csv ? csv_heading : json_opening; }

std::optional<ExportPlace> place_of_line(ExportForm form, std::string_view line) {
  const std::string_view opening = form == ExportForm::csv ? "" : json_opening;
  const std::string_view before_log = form == ExportForm::csv ? "," : json_log;
  if (!line.starts_with(opening)) return std::nullopt;
  line.remove_prefix(opening.size());
  const std::size_t comma = line.find(',');
  const auto seq = parse_decimal(line.substr(0, comma));
  if (!seq || comma == std::string_view::npos || !line.substr(comma).starts_with(before_log)) return std::nullopt;
  return ExportPlace{*seq, std::string(line.substr(comma + before_log.size(), uuid_text_bytes))};
}

std::string ExportRows::heading() const { return form_ == ExportForm::csv ? std::string(csv_heading) : std::string(); }

const std::string& ExportRows::run_of(std::int64_t number) const {
  static const std::string log_run(log_run_id), unknown;
  if (number == 0) return log_run;
  const auto found = runs_.find(number);
  return found == runs_.end() ? unknown : found->second;
}

ExportRow ExportRows::append(const ExportFields& fields, std::string& out) {
  ExportRow row;
  if (fields.size() != column_count) return row;
  if (form_ == ExportForm::jsonl)
    append_json(fields, out);
  else
    append_csv(fields, out);
  row.seq = export_integer(*fields[Column::seq]);
  row.type = fields[Column::type].value_or("");
  row.body = fields[Column::body].value_or("");
  row.archived = fields[Column::salt].has_value() && !fields[Column::body];
  return row;
}

void ExportRows::append_json(const ExportFields& fields, std::string& out) {
  const auto value = [&](Column column) { return fields[column].value_or(std::string_view()); };
  const auto text_or_null = [&](std::string_view name, Column column, auto append_value) {
    out += name;
    if (!fields[column]) {
      out += "null";
      return;
    }
    out.push_back('"');
    append_value(out, *fields[column]);
    out.push_back('"');
  };
  out += json_opening;
  append_number(out, export_integer(value(seq)));
  out += json_log;
  out += log_id_;
  out += "\",\"run_no\":";
  append_number(out, export_integer(value(run_no)));
  out += ",\"run_id\":";
  json::append_quoted(out, run_of(export_integer(value(run_no))));
  out += ",\"run_seq\":";
  append_number(out, export_integer(value(run_seq)));
  text_or_null(",\"recorded_at\":", recorded_at, append_time);
  text_or_null(",\"occurred_at\":", occurred_at, append_time);
  out += ",\"origin\":\"";
  out += origin_name(export_integer(value(origin)));
  out += "\",\"type\":";
  json::append_quoted(out, value(type));
  out += ",\"schema_version\":";
  append_number(out, export_integer(value(schema_version)));
  out += ",\"step_id\":";
  if (fields[step_id])
    json::append_quoted(out, *fields[step_id]);
  else
    out += "null";
  out += ",\"actor\":";
  json::append_quoted(out, value(actor));
  text_or_null(",\"event_id\":", event_id, append_uuid);
  text_or_null(",\"body_hash\":", body_hash, append_hex);
  text_or_null(",\"salt\":", salt, append_hex);
  text_or_null(",\"run_hash\":", run_hash, append_hex);
  // Writes the hashed bytes, which are JSON.
  out += ",\"body\":";
  out += fields[body] ? *fields[body] : std::string_view("null");
  out += "}\n";
}

void ExportRows::append_csv(const ExportFields& fields, std::string& out) {
  const auto value = [&](Column column) { return fields[column].value_or(std::string_view()); };
  const auto next = [&] { out.push_back(','); };
  append_number(out, export_integer(value(seq))), next();
  out += log_id_, next();
  append_number(out, export_integer(value(run_no))), next();
  append_cell(out, run_of(export_integer(value(run_no)))), next();
  append_number(out, export_integer(value(run_seq))), next();
  append_time(out, value(recorded_at)), next();
  if (fields[occurred_at]) append_time(out, value(occurred_at));
  next();
  out += origin_name(export_integer(value(origin))), next();
  append_cell(out, value(type)), next();
  append_number(out, export_integer(value(schema_version))), next();
  append_cell(out, value(step_id)), next();
  append_cell(out, value(actor)), next();
  append_uuid(out, value(event_id)), next();
  append_hex(out, value(body_hash)), next();
  append_hex(out, value(salt)), next();
  append_hex(out, value(run_hash)), next();
  append_cell(out, value(body));
  out.push_back('\n');
}

}  // namespace muniment::cli
