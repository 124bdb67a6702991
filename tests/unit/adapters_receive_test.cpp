// Tests of the OTLP/HTTP receiver below the HTTP layer: protobuf becomes OTLP/JSON, gzip is limited, and spans wait in
// files until their trace is complete; each is delivered once, across restarts.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "adapters/receive/otlp_protobuf.hpp"
#include "adapters/receive/trace_spool.hpp"
#include "base/files/gzip.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "support/otlp_taken.hpp"

namespace muniment::cli {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr std::size_t request_limit = 1 << 20;

std::string pb_varint(std::uint64_t number) {
  std::string out;
  for (; number >= 128; number >>= 7) out.push_back(static_cast<char>((number & 127) | 128));
  out.push_back(static_cast<char>(number));
  return out;
}
std::string pb_number(std::uint32_t field, std::uint64_t value) { return pb_varint(field << 3) + pb_varint(value); }
std::string pb_bytes(std::uint32_t field, const std::string& value) {
  return pb_varint(field << 3 | 2) + pb_varint(value.size()) + value;
}
std::string pb_fixed(std::uint32_t field, std::uint64_t value) {
  std::string out = pb_varint(field << 3 | 1);
  for (int i = 0; i < 8; ++i, value >>= 8) out.push_back(static_cast<char>(value & 255));
  return out;
}
std::string pb_attribute(const std::string& key, const std::string& any) { return pb_bytes(1, key) + pb_bytes(2, any); }

std::string request_of_all_fields() {
  const std::string id(16, '\x11'), span(8, '\x22'), parent(8, '\x33');
  const std::string values =
      pb_bytes(9, pb_attribute("text", pb_bytes(1, "a\0b\n"s))) + pb_bytes(9, pb_attribute("yes", pb_number(2, 1))) +
      pb_bytes(9, pb_attribute("minus", pb_number(3, static_cast<std::uint64_t>(-7)))) +
      pb_bytes(9, pb_attribute("real", pb_fixed(4, std::bit_cast<std::uint64_t>(0.5)))) +
      pb_bytes(9, pb_attribute("list", pb_bytes(5, pb_bytes(1, pb_bytes(1, "x")) + pb_bytes(1, "")))) +
      pb_bytes(9, pb_attribute("map", pb_bytes(6, pb_bytes(1, pb_attribute("k", pb_number(3, 1)))))) +
      pb_bytes(9, pb_attribute("raw", pb_bytes(7, "\xff\x00"s)));
  const std::string event = pb_fixed(1, 5) + pb_bytes(2, "e") + pb_bytes(3, pb_attribute("k", pb_bytes(1, "v")));
  const std::string link = pb_bytes(1, id) + pb_bytes(2, span);
  const std::string one = pb_bytes(1, id) + pb_bytes(2, span) + pb_bytes(4, parent) + pb_bytes(5, "chat") +
                          pb_number(6, 3) + pb_fixed(7, 1780000000000000000) + pb_fixed(8, 1780000000900000000) +
                          values + pb_bytes(11, event) + pb_bytes(13, link) +
                          pb_bytes(15, pb_bytes(2, "bad") + pb_number(3, 2)) + pb_number(99, 1);
  const std::string scope =
      pb_bytes(1, pb_bytes(1, "scope") + pb_bytes(2, "1")) + pb_bytes(2, one) + pb_bytes(3, "https://schema");
  return pb_bytes(1, pb_bytes(1, pb_bytes(1, pb_attribute("service.name", pb_bytes(1, "demo")))) + pb_bytes(2, scope));
}

TEST(OtlpProtobuf, EveryFieldBecomesItsJson) {
  const auto json = otlp_json_of(OtlpSignal::traces, request_of_all_fields(), request_limit);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(
      *json,
      R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"demo"}}]},"scopeSpans":[{"scope":{"name":"scope","version":"1"},"spans":[{"traceId":"11111111111111111111111111111111","spanId":"2222222222222222","parentSpanId":"3333333333333333","name":"chat","kind":3,"startTimeUnixNano":"1780000000000000000","endTimeUnixNano":"1780000000900000000","attributes":[{"key":"text","value":{"stringValue":"a\u0000b\n"}},{"key":"yes","value":{"boolValue":true}},{"key":"minus","value":{"intValue":"-7"}},{"key":"real","value":{"doubleValue":0.5}},{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"x"},{}]}}},{"key":"map","value":{"kvlistValue":{"values":[{"key":"k","value":{"intValue":"1"}}]}}},{"key":"raw","value":{"bytesValue":"/wA="}}],"events":[{"timeUnixNano":"5","name":"e","attributes":[{"key":"k","value":{"stringValue":"v"}}]}],"links":[{"traceId":"11111111111111111111111111111111","spanId":"2222222222222222"}],"status":{"message":"bad","code":2}}],"schemaUrl":"https://schema"}]}]})");
}

TEST(OtlpProtobuf, ATruncatedOrDamagedRequestIsRefusedOrStillJson) {
  const std::string request = request_of_all_fields();
  for (std::size_t size = 1; size < request.size(); ++size)
    EXPECT_FALSE(otlp_json_of(OtlpSignal::traces, request.substr(0, size), request_limit).ok()) << size;
  for (std::size_t at = 0; at < request.size(); ++at) {
    std::string damaged = request;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    const auto json = otlp_json_of(OtlpSignal::traces, damaged, request_limit);
    EXPECT_TRUE(!json || json->front() == '{');
  }
}

TEST(OtlpProtobuf, DeepValuesBecomeBytesAndTheRestOfTheSpanStays) {
  std::string any = pb_bytes(1, "deep");
  for (int i = 0; i < 5'000; ++i) any = pb_bytes(5, pb_bytes(1, any));
  const std::string span =
      pb_bytes(1, std::string(16, '\x11')) + pb_bytes(9, pb_attribute("k", any)) + pb_bytes(5, "name");
  const std::string request = pb_bytes(1, pb_bytes(2, pb_bytes(2, span)));
  const auto json = otlp_json_of(OtlpSignal::traces, request, request_limit);
  ASSERT_TRUE(json.ok());
  EXPECT_TRUE(json::parse(std::string_view(*json)).ok());
  EXPECT_NE(json->find("\"name\":\"name\""), std::string::npos);
  EXPECT_NE(json->find("bytesValue"), std::string::npos);
}

TEST(OtlpProtobuf, TextOverTheLimitIsTooLarge) {
  std::string span;
  for (int i = 0; i < 100; ++i) span += pb_bytes(9, pb_attribute("k", pb_bytes(1, std::string(100, '\x01'))));
  const std::string request = pb_bytes(1, pb_bytes(2, pb_bytes(2, span)));
  const auto json = otlp_json_of(OtlpSignal::traces, request, 20'000);
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().code, Errc::too_large);
}

TEST(OtlpProtobuf, RepliesSayWhatWasRefused) {
  EXPECT_EQ(otlp_response_protobuf({}), "");
  EXPECT_EQ(otlp_response_protobuf({3, "why"}), pb_bytes(1, pb_number(1, 3) + pb_bytes(2, "why")));
  EXPECT_EQ(otlp_status_protobuf(3, "bad"), pb_number(1, 3) + pb_bytes(2, "bad"));
}

// printf hello | gzip -n
const std::string hello_gzip(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00", 25);

TEST(Gzip, ContentIsReadWithinItsLimit) {
  EXPECT_EQ(gunzip(hello_gzip, 5).value(), "hello");
  EXPECT_EQ(gunzip(hello_gzip + hello_gzip, 10).value(), "hellohello");
  EXPECT_EQ(gunzip(hello_gzip, 4).error().code, Errc::too_large);
  for (std::size_t size = 0; size < hello_gzip.size(); ++size)
    EXPECT_FALSE(gunzip(std::string_view(hello_gzip).substr(0, size), 5).ok()) << size;
  EXPECT_FALSE(gunzip("plain text, no gzip", 100).ok());
}

struct SpoolClock : Clock {
  Monotonic monotonic() const override { return at; }
  Monotonic at{1h};
};

std::string span_json(char trace, char span, const std::string& parent, const std::string& name) {
  return R"({"traceId":")" + std::string(32, trace) + R"(","spanId":")" + std::string(16, span) +
         R"(","parentSpanId":")" + parent + R"(","name":")" + name +
         R"(","startTimeUnixNano":"1780000000000000000","endTimeUnixNano":"1780000001000000000"})";
}
std::string spans_json(const std::string& spans) {
  return R"({"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{"name":"s"},"spans":[)" + spans + "]}]}]}";
}

class Spooled : public testing::Test {
 protected:
  void open(TraceRules rules = {}) {
    spool_.reset();
    auto opened = TraceSpool::open(folder_.path() + "/spool", rules, clock_);
    ASSERT_TRUE(opened.ok());
    spool_ = std::move(*opened);
  }
  OtlpRefused add(const std::string& request) {
    const auto refused = spool_->add(OtlpSignal::traces, request);
    EXPECT_TRUE(refused.ok()) << (refused ? "" : refused.error().message);
    return refused ? *refused : OtlpRefused{};
  }
  static std::size_t spans_of(const CompleteTrace& trace) {
    const TakenFile taken = take_path(trace.path);
    std::size_t spans = 0;
    for (const Taken& one : taken.traces) spans += one.actions.size() - 1;  // except the resource's action
    return spans;
  }

  test::TemporaryFolder folder_;
  SpoolClock clock_;
  std::unique_ptr<TraceSpool> spool_;
};

TEST_F(Spooled, ATraceIsCompleteWhenItsRootHasEndedAndNothingCameSince) {
  open();
  const std::string root(16, 'a');
  add(spans_json(span_json('1', 'b', root, "child")));  // before its parent
  clock_.at += 1min;
  EXPECT_TRUE(spool_->take_complete().empty());
  add(spans_json(span_json('1', 'a', "", "root")));
  clock_.at += 4s;
  add(spans_json(span_json('1', 'c', root, "late child")));
  clock_.at += 4s;
  EXPECT_TRUE(spool_->take_complete().empty());
  clock_.at += 1s;
  const auto complete = spool_->take_complete();
  ASSERT_EQ(complete.size(), 1U);
  EXPECT_EQ(spans_of(complete[0]), 5U);  // the start, the span and the end of a step, and two spans
  EXPECT_TRUE(spool_->take_complete(TraceSpool::Complete::all).empty());
}

TEST_F(Spooled, ATraceWithoutARootIsCompleteAfterALongerTime) {
  open();
  add(spans_json(span_json('1', 'b', std::string(16, 'a'), "child")));
  clock_.at += 599s;
  EXPECT_TRUE(spool_->take_complete(TraceSpool::Complete::ended).empty());
  clock_.at += 1s;
  EXPECT_EQ(spool_->take_complete().size(), 1U);
}

TEST_F(Spooled, AnExporterThatTriesAgainRecordsNothingTwice) {
  open();
  const std::string request = spans_json(span_json('1', 'a', "", "root") + "," + span_json('1', 'a', "", "root") + "," +
                                         span_json('2', 'a', "", "root"));
  EXPECT_EQ(add(request).items, 0U);
  EXPECT_EQ(add(request).items, 0U);
  EXPECT_EQ(spool_->open_traces(), 2U);
  open();  // another process
  EXPECT_EQ(add(request).items, 0U);
  const auto complete = spool_->take_complete(TraceSpool::Complete::all);
  ASSERT_EQ(complete.size(), 2U);
  for (const CompleteTrace& trace : complete) {
    EXPECT_EQ(spans_of(trace), 1U);
    EXPECT_TRUE(spool_->recorded(trace).ok());
    EXPECT_FALSE(std::filesystem::exists(trace.path));
  }
  add(request);
  EXPECT_EQ(spool_->open_traces(), 0U);
  open();
  add(request);
  EXPECT_EQ(spool_->open_traces(), 0U);
  EXPECT_EQ(add(spans_json(span_json('1', 'a', "", "other"))).items, 1U);  // another span with the same id
  add(spans_json(span_json('1', 'b', "", "late")));
  EXPECT_EQ(spool_->open_traces(), 1U);
  EXPECT_EQ(spool_->take_complete(TraceSpool::Complete::all)[0].number, 1U);
}

TEST_F(Spooled, ALineThatWasNotFinishedIsDropped) {
  open();
  add(spans_json(span_json('1', 'a', "", "root")));
  const std::string path = folder_.path() + "/spool/" + std::string(32, '1') + "-0.jsonl";
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto size = std::filesystem::file_size(path);
  std::ofstream(path, std::ios::app) << spans_json(span_json('1', 'b', "", "half")).substr(0, 90);
  open();
  EXPECT_EQ(std::filesystem::file_size(path), size);
  add(spans_json(span_json('1', 'b', "", "whole")));
  EXPECT_EQ(spans_of(spool_->take_complete(TraceSpool::Complete::all).at(0)), 2U);
}

TEST_F(Spooled, SpansThatBelongToNoTraceOrExceedItsLimitAreRefused) {
  TraceRules rules;
  rules.trace_spans_max = 2;
  rules.open_traces_max = 1;
  open(rules);
  EXPECT_EQ(add(spans_json(R"({"name":"no ids"},{"traceId":"11111111111111111111111111111111","spanId":"0"},7)")).items,
            3U);
  EXPECT_EQ(spool_->open_traces(), 0U);
  const OtlpRefused refused = add(spans_json(span_json('1', 'a', "", "1") + "," + span_json('1', 'b', "", "2") + "," +
                                             span_json('1', 'c', "", "3")));
  EXPECT_EQ(refused.items, 1U);
  EXPECT_NE(refused.why.find("over 2 spans"), std::string::npos);
  const auto full = spool_->add(OtlpSignal::traces, spans_json(span_json('2', 'a', "", "1")));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Errc::over_budget);
  EXPECT_EQ(spool_->open_traces(), 1U);
  for (const char* text : {"", "7", "[]", "{\"resourceSpans\":7}", "{\"resourceSpans\":["})
    EXPECT_FALSE(spool_->add(OtlpSignal::traces, text).ok()) << text;
}

TEST_F(Spooled, CharactersThatJsonRefusesAreKeptForTheImporter) {
  open();
  add(spans_json(span_json('1', 'a', "", "a\\u0000b")));
  const auto complete = spool_->take_complete(TraceSpool::Complete::all);
  ASSERT_EQ(complete.size(), 1U);
  std::ifstream file(complete[0].path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("a\\u0000b"), std::string::npos);
  const TakenFile taken = take_path(complete[0].path);
  EXPECT_EQ(taken.traces.at(0).actions.at(0).event.blobs.size(), 1U);
}

// The same spans, received in another order and with retries, give the same events as the file.
TEST_F(Spooled, ATraceThatWasReceivedIsTheTraceOfTheFile) {
  open();
  const std::filesystem::path golden = std::filesystem::path(MUNIMENT_GOLDEN) / "imports/otlp.jsonl";
  std::ifstream file(golden);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::reverse(lines.begin(), lines.end());
  for (int i = 0; i < 2; ++i) {
    for (const std::string& line : lines) {
      add(line);
      EXPECT_TRUE(spool_->add(OtlpSignal::logs, line).ok());
    }
  }
  const TakenFile imported = take_path(golden);
  const auto complete = spool_->take_complete(TraceSpool::Complete::all);
  ASSERT_EQ(complete.size(), imported.traces.size());
  for (const CompleteTrace& trace : complete) {
    const TakenFile received = take_path(trace.path);
    ASSERT_EQ(received.traces.size(), 1U);
    const auto same = std::find_if(imported.traces.begin(), imported.traces.end(),
                                   [&](const Taken& one) { return one.name == received.traces[0].name; });
    ASSERT_NE(same, imported.traces.end());
    EXPECT_EQ(received.traces[0].sha256, same->sha256);
    EXPECT_EQ(received.traces[0].head.goal, same->head.goal);
    std::string here, there;
    for (const RunAction& action : received.traces[0].actions) here += shown(action) + "\n";
    for (const RunAction& action : same->actions) there += shown(action) + "\n";
    EXPECT_EQ(here, there);
  }
}

}  // namespace
}  // namespace muniment::cli
