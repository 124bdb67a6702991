#include "cli/show/top_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t name_columns = 28;

std::int64_t whole(const Metrics& metrics, std::string_view name) {
  return static_cast<std::int64_t>(metrics.value(name).value_or(0));
}
std::int64_t labelled(const Metrics& metrics, std::string_view name, std::string_view label, std::string_view is) {
  return static_cast<std::int64_t>(metrics.value(name, label, is).value_or(0));
}
std::uint64_t shown(std::int64_t number) { return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0)); }

TopRate rate_of(const TopLook& before, const TopLook& after, std::string_view name, double seconds) {
  const Distribution newer = after.metrics.distribution(name).since(before.metrics.distribution(name));
  return {newer.count() / seconds, newer.quantile(0.5), newer.quantile(0.99)};
}

double errors_of(const Metrics& metrics) {
  return metrics.sum("muniment_requests_total", "code", "ok") + metrics.sum("muniment_lines_refused_total");
}

std::string time_of(const std::optional<double>& seconds) {
  return seconds ? human_duration(static_cast<std::int64_t>(std::llround(*seconds * 1e6))) : "-";
}

std::string rate_text(double rate) {
  return rate < 9.95 ? fmt::format("{:.1f}/s", rate) : grouped(static_cast<std::uint64_t>(std::llround(rate))) + "/s";
}

std::string timed(std::string_view name, const TopRate& rate) {
  return fmt::format("{:<10} {:>11}  p50 {:>9}  p99 {:>9}", name, rate_text(rate.per_second), time_of(rate.p50_s),
                     time_of(rate.p99_s));
}

std::string alarmed(const Output& out, bool alarm, const std::string& text) {
  return alarm ? out.tone(Tone::red, text) : text;
}

std::string followers_of(const TopFrame& frame, const Output& out) {
  std::string text = "followers ";
  bool behind = false;
  for (const auto& [name, lag] : frame.lags) {
    if (lag == 0) continue;
    behind = true;
    text += fmt::format(" {} {}", out.one_line(name), grouped(shown(lag)));
  }
  return behind ? text + " events behind" : text + fmt::format(" {} up to date", frame.lags.size());
}

std::string run_line(const TopRun& run, Time now, const Output& out, std::size_t width) {
  const std::string ago =
      run.last_at ? human_duration(std::max<std::int64_t>(now.micros - run.last_at->micros, 0)) : "-";
  std::string id = fit(out.one_line(run.run_id), name_columns);
  id += std::string(name_columns - std::min(columns_of(id), name_columns), ' ');
  return fit(fmt::format("{}  {:>12}  #{:<7} {:<24} {}", id, ago, run.last_run_seq,
                         fit(out.one_line(run.last_type), 24), fit(out.one_line(run.agent), 24)),
             width);
}

void write_rate(json::Writer& out, std::string_view name, const TopRate& rate) {
  const auto number = [](double value) { return fmt::format("{:.6f}", value); };
  out.key(name).begin_object().raw_member("per_second", number(rate.per_second));
  out.raw_member("p50_s", rate.p50_s ? number(*rate.p50_s) : "null")
      .raw_member("p99_s", rate.p99_s ? number(*rate.p99_s) : "null")
      .end_object();
}

}  // namespace

TopFrame frame_of(const TopLook& before, const TopLook& after) {
  const Metrics& now = after.metrics;
  const double seconds = std::max(std::chrono::duration<double>(after.at - before.at).count(), 0.001);
  const auto grown = [&](std::string_view name) {
    return std::max(now.value(name).value_or(0) - before.metrics.value(name).value_or(0), 0.0);
  };
  TopFrame frame;
  for (const MetricSample& sample : now.samples) {
    if (sample.name == "muniment_build_info") frame.version = sample.label("version");
    if (sample.name == "muniment_follower_lag_events")
      frame.lags.emplace_back(sample.label("follower"), static_cast<std::int64_t>(sample.value));
  }
  std::ranges::stable_sort(frame.lags, std::greater(), [](const auto& lag) { return lag.second; });
  frame.now = after.now;
  frame.uptime_s = whole(now, "muniment_uptime_seconds");
  frame.events = whole(now, "muniment_log_events_total");
  frame.signed_events = whole(now, "muniment_log_signed_events");
  frame.events_per_second = grown("muniment_log_events_total") / seconds;
  frame.requests_per_second =
      std::max(now.sum("muniment_requests_total") - before.metrics.sum("muniment_requests_total"), 0.0) / seconds;
  frame.errors_per_second = std::max(errors_of(now) - errors_of(before.metrics), 0.0) / seconds;
  frame.append = rate_of(before, after, "muniment_append_seconds", seconds);
  frame.commit = rate_of(before, after, "muniment_append_commit_seconds", seconds);
  frame.wait = rate_of(before, after, "muniment_append_wait_seconds", seconds);
  frame.query = rate_of(before, after, "muniment_query_seconds", seconds);
  const Distribution batches = now.distribution("muniment_append_batch_events")
                                   .since(before.metrics.distribution("muniment_append_batch_events"));
  if (batches.count() > 0) frame.batch_events = batches.sum / batches.count();
  frame.queue_events = whole(now, "muniment_append_queue_events");
  frame.queue_bytes = whole(now, "muniment_append_queue_bytes");
  frame.connections = whole(now, "muniment_connections");
  frame.subscriptions = whole(now, "muniment_subscriptions");
  frame.workers = whole(now, "muniment_workers");
  frame.workers_busy = whole(now, "muniment_workers_busy");
  frame.workers_wanted = whole(now, "muniment_workers_wanted");
  frame.runs_open = labelled(now, "muniment_runs", "status", "open");
  frame.runs_halted = labelled(now, "muniment_runs", "status", "halted");
  frame.log_warnings = labelled(now, "muniment_log_lines_total", "level", "warning");
  frame.log_errors = labelled(now, "muniment_log_lines_total", "level", "error");
  frame.search_restarts = whole(now, "muniment_search_restarts_total");
  frame.search_waiting_chunks = whole(now, "muniment_search_waiting_chunks");
  frame.disk_free_bytes = whole(now, "muniment_disk_free_bytes");
  frame.disk_reserve_bytes = whole(now, "muniment_disk_reserve_bytes");
  frame.resident_bytes = whole(now, "process_resident_memory_bytes");
  frame.cpu_share = grown("process_cpu_seconds_total") / seconds;
  frame.database_up = whole(now, "muniment_database_up") == 1;
  frame.late = after.late;
  frame.degraded = after.degraded;
  frame.runs = after.runs;
  return frame;
}

std::vector<std::string> lines_of(const TopFrame& frame, const Output& out, std::size_t height) {
  std::vector<std::string> lines;
  const auto add = [&](std::string text) { lines.push_back(std::move(text)); };
  add(fmt::format("munimentd {}  up {}  {}", out.one_line(frame.version), human_duration(frame.uptime_s * 1'000'000),
                  format_time(frame.now).substr(0, 19) + "Z"));
  add(fmt::format("log        {:>11}  {} events, {} not signed yet", rate_text(frame.events_per_second),
                  grouped(shown(frame.events)), grouped(shown(frame.events - frame.signed_events))));
  add(timed("append", frame.append));
  add(timed("  queued", frame.wait) +
      fmt::format("  {} events ({}) now", grouped(shown(frame.queue_events)), human_size(shown(frame.queue_bytes))));
  add(timed("  commit", frame.commit) +
      (frame.batch_events ? fmt::format("  {:.1f} events each", *frame.batch_events) : ""));
  add(timed("query", frame.query) +
      (frame.search_waiting_chunks > 0
           ? fmt::format("  {} chunks wait for the encoder", grouped(shown(frame.search_waiting_chunks)))
           : ""));
  add(fmt::format("requests   {:>11}  {}  {} connections  {} subscriptions", rate_text(frame.requests_per_second),
                  alarmed(out, frame.errors_per_second > 0, rate_text(frame.errors_per_second) + " refused"),
                  frame.connections, frame.subscriptions));
  add(fmt::format("workers    {} of {} busy, {} requests queued", frame.workers_busy, frame.workers,
                  frame.workers_wanted));
  add(followers_of(frame, out));
  for (const LateFollower& late : frame.late)
    add(out.tone(Tone::yellow, fit("  behind   " + out.advised(explained(late, frame.now)), out.width())));
  add(alarmed(out, frame.disk_free_bytes < frame.disk_reserve_bytes,
              fmt::format("disk       {} free, {} reserved", human_size(shown(frame.disk_free_bytes)),
                          human_size(shown(frame.disk_reserve_bytes)))));
  add(fmt::format("process    {:.0f} % of a processor, {} resident, search child restarted {} times",
                  frame.cpu_share * 100, human_size(shown(frame.resident_bytes)), frame.search_restarts));
  add(fmt::format("logged     {} warnings, {}", frame.log_warnings,
                  alarmed(out, frame.log_errors > 0, fmt::format("{} errors", frame.log_errors))));
  if (!frame.database_up) add(out.tone(Tone::red, "database   Postgres does not respond"));
  for (const std::string& text : frame.degraded)
    add(out.tone(Tone::red, fit("degraded   " + out.one_line(text), out.width())));
  add("");
  add(out.tone(Tone::bold, fit(fmt::format("runs       {} open, {} halted", grouped(shown(frame.runs_open)),
                                           grouped(shown(frame.runs_halted))),
                               out.width())));
  for (const TopRun& run : frame.runs) add(run_line(run, frame.now, out, out.width()));
  for (std::string& line : lines) {
    if (line.find('\x1b') == std::string::npos) line = fit(line, out.width());
  }
  if (lines.size() > height) lines.resize(height);
  return lines;
}

std::string json_of(const TopFrame& frame) {
  json::Writer out;
  const auto number = [](double value) { return fmt::format("{:.6f}", value); };
  out.begin_object()
      .member("time", format_time(frame.now))
      .member("version", frame.version)
      .member("uptime_s", frame.uptime_s);
  out.member("events", frame.events)
      .member("signed_events", frame.signed_events)
      .raw_member("events_per_second", number(frame.events_per_second));
  write_rate(out, "append", frame.append);
  write_rate(out, "queued", frame.wait);
  write_rate(out, "commit", frame.commit);
  write_rate(out, "query", frame.query);
  out.raw_member("batch_events", frame.batch_events ? number(*frame.batch_events) : "null");
  out.member("queue_events", frame.queue_events).member("queue_bytes", frame.queue_bytes);
  out.raw_member("requests_per_second", number(frame.requests_per_second))
      .raw_member("refused_per_second", number(frame.errors_per_second));
  out.member("connections", frame.connections).member("subscriptions", frame.subscriptions);
  out.member("workers", frame.workers)
      .member("workers_busy", frame.workers_busy)
      .member("workers_wanted", frame.workers_wanted);
  out.member("disk_free_bytes", frame.disk_free_bytes).member("disk_reserve_bytes", frame.disk_reserve_bytes);
  out.raw_member("cpu_share", number(frame.cpu_share))
      .member("resident_bytes", frame.resident_bytes)
      .member("search_restarts", frame.search_restarts)
      .member("search_waiting_chunks", frame.search_waiting_chunks);
  out.member("log_warnings", frame.log_warnings)
      .member("log_errors", frame.log_errors)
      .member("database_up", frame.database_up);
  out.member("runs_open", frame.runs_open)
      .member("runs_halted", frame.runs_halted)
      .key("followers_behind")
      .begin_object();
  for (const auto& [name, lag] : frame.lags) out.member(name, lag);
  out.end_object().key("followers_late").begin_array();
  for (const LateFollower& late : frame.late) {
    out.begin_object().member("follower", late.name).member("events", late.events);
    if (late.since) out.member("since", format_time(*late.since));
    out.member("effect", effect_of(late.name)).end_object();
  }
  out.end_array().key("degraded").begin_array();
  for (const std::string& text : frame.degraded) out.string(text);
  out.end_array().key("runs").begin_array();
  for (const TopRun& run : frame.runs) {
    out.begin_object()
        .member("run_id", run.run_id)
        .member("agent", run.agent)
        .member("last_type", run.last_type)
        .member("last_run_seq", run.last_run_seq);
    out.member("last_at", run.last_at ? format_time(*run.last_at) : "").end_object();
  }
  out.end_array().end_object();
  return std::move(out).text();
}

}  // namespace muniment::cli
