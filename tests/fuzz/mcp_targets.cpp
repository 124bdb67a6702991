// Sends lines of an MCP host, one message each, to a session whose native methods answer at random, late or never.
// Every message of the session is JSON on one line, and no request is answered twice.
#include <map>
#include <random>

#include "base/json/message_skim.hpp"
#include "fuzz/target.hpp"
#include "mcp/session.hpp"

namespace muniment::fuzz {
namespace {

constexpr const char* results[] = {
    "{}",
    R"({"run_id":"r1","seq":1})",
    R"({"subscription":1})",
    R"({"subscription":2})",
    R"({"runs":[{"run_id":"r1","agent":"a","status":"open"},{}],"cursor":"c"})",
    R"({"run":{"run_id":"r1"},"state":[1],"run_seq":1.5,"documents":7,"errors":{"a":1}})",
    R"({"results":[{"pointer":"run://a","ok":true,"text":"é\n","query":"q","cards":[{}]}],"halted":[{"run_id":"r1"}]})",
    R"({"results":[],"corpora":[{"corpus":"memory"}],"events":[null],"receipts":[1,2]})"};
constexpr const char* errors[] = {
    R"({"code":-32000,"message":"m\n","data":{"code":"not_found"}})",
    R"({"code":-32000,"message":"é","data":{"code":"unavailable","retryable":true}})",
    R"({"code":-32000,"message":"stopped","data":{"code":"run_halted","pointer":"ev://a"}})", "{}"};

class StillClock final : public Clock {
 public:
  Time now() const override { return {1'795'000'000'000'000}; }
  Monotonic monotonic() const override { return Monotonic{} + std::chrono::hours(1) + passed; }
  std::chrono::milliseconds passed{0};
};

class RandomNative final : public mcp::Native {
 public:
  explicit RandomNative(std::mt19937& random) : random_(random) {}

  std::int64_t request(std::string_view, std::string params, Done done) override {
    const auto document = json::parse(params);
    require(document.ok() && document->root().is(json::Kind::object), "a native request without an object");
    const std::int64_t number = next_++;
    waiting_.emplace(number, std::move(done));
    if (random_() % 4 == 0) answer(number);
    return number;
  }
  void cancel(std::int64_t number) override { waiting_.erase(number); }
  void set_working_folder(std::string) override {}
  void add_folders(const std::vector<std::string>&) override {}

  void answer_some() {
    while (!waiting_.empty() && random_() % 3 != 0) answer(waiting_.begin()->first);
  }
  void answer_all() {
    while (!waiting_.empty()) answer(waiting_.begin()->first);
  }

 private:
  void answer(std::int64_t number) {
    const Done done = std::move(waiting_.at(number));
    waiting_.erase(number);
    const bool fails = random_() % 4 == 0;
    const auto document =
        json::parse(fails ? errors[random_() % std::size(errors)] : results[random_() % std::size(results)]);
    done(fails ? mcp::NativeReply{{}, document->root()} : mcp::NativeReply{document->root(), {}});
  }

  std::mt19937& random_;
  std::map<std::int64_t, Done> waiting_;
  std::int64_t next_ = 1;
};

// Counts the answers that each id may still receive.
class Owed {
 public:
  void asked(const std::string& line) {
    for (const std::string_view message : json::messages_of(line)) ++left_[mcp::parse_message(std::string(message)).id];
    if (json::is_batch(line)) ++left_[std::string()];
  }
  void take(const mcp::Outgoing& message) {
    const bool is_batch = message.request.starts_with(mcp::batch_key);
    require(json::parse(message.text).ok() || is_batch || repeats_odd_id(message), "the session sends what is no JSON");
    require(message.text.find('\n') == std::string::npos, "a message is more than a line");
    if (!message.last) return;
    if (!is_batch) return require(left_[message.request]-- > 0, "a request is answered twice");
    const auto batch = json::parse(message.text);
    if (!batch || !batch->root().is(json::Kind::array)) return;
    for (const json::Value answer : batch->root()) {
      const json::Value id = answer["id"];
      if (id) require(left_[std::string(id.source())]-- > 0, "a request of a batch is answered twice");
    }
  }

 private:
  // An answer repeats an id that the log refuses, such as a number beyond 64 bits; everything else is strict JSON.
  static bool repeats_odd_id(const mcp::Outgoing& message) {
    const std::string head = R"({"jsonrpc":"2.0","id":)";
    if (!message.text.starts_with(head + message.request)) return false;
    const std::string usual = head + "0" + message.text.substr(head.size() + message.request.size());
    return json::parse(std::string_view(usual)).ok();
  }

  std::map<std::string, int> left_;
};

void try_mcp(const std::string& input) {
  std::mt19937 random(static_cast<std::uint32_t>(std::hash<std::string>{}(input)));
  static StillClock clock;
  static mcp::Server server(clock, {"1.2.3", {"runs", "ledger", "documents"}});
  clock.passed += std::chrono::hours(2);  // handles of earlier inputs have expired
  RandomNative native(random);
  Owed owed;
  const auto session =
      std::make_shared<mcp::Session>(server, native, mcp::SessionOptions{"uid:1", random() % 2 == 0, {}},
                                     [&](const mcp::Outgoing& message) { owed.take(message); });
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t end = std::min(input.find('\n', at), input.size());
    const std::string line = input.substr(at, end - at);
    at = end + 1;
    owed.asked(line);
    session->receive(line);
    native.answer_some();
    const auto happened = json::parse(line);  // the line is also a notification of the native side
    if (happened) session->notified(happened->root());
    if (random() % 4 != 0) continue;
    clock.passed += std::chrono::milliseconds(random() % 70'000);
    session->tick(clock.monotonic());
  }
  if (random() % 2 == 0) native.answer_all();
  random() % 2 == 0 ? session->close() : session->abandon();
  native.answer_all();
  require(session->idle(), "a session that is closed waits for something");
}

constexpr const char* initialized =
    R"({"jsonrpc":"2.0","method":"muniment/session","params":{"run_id":"r1","agent":"a","labels":{"a":"b"}}}
{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"remember","arguments":{"text":"t"},"_meta":{"progressToken":1}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"record_event","arguments":{"type":"message.added","body":{"content":["a",{"type":"text","text":"b"}]}}}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}
{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"run://r1"}}
{"jsonrpc":"2.0","method":"event","params":{"subscription":1}}
{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"run://r1"}}
{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"ev://memory/a"}}
{"jsonrpc":"2.0","id":6,"method":"prompts/get","params":{"name":"audit_run","arguments":{"run":"r1"}}}
{"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"audit_run"},"argument":{"name":"run","value":"r"}}}
{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"run_end","arguments":{"outcome":"success"}}}
{"jsonrpc":"2.0","id":"muniment-1","result":{}})";

constexpr const char* stateless =
    R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"resourceSubscriptions":["run://r1","log://validation"]}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"status","arguments":{"handle":"call-0"}}}
{"jsonrpc":"2.0","method":"metrics","params":{"subscription":2}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})";

constexpr const char* batches =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}
[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"status"}},{"jsonrpc":"2.0","method":"notifications/initialized"}]
[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"remember","arguments":"{\"text\":\"t\",\"tags\":\"a\"}"}},{"jsonrpc":"2.0","id":3,"method":"ping"},5]
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}})";

}  // namespace

std::vector<Target> mcp_targets() { return {{"mcp", try_mcp, {initialized, stateless, batches}}}; }

}  // namespace muniment::fuzz
