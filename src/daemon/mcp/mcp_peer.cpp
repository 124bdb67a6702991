// Connects MCP sessions with the dispatcher and the subscriptions.
#include "daemon/mcp/mcp_peer.hpp"

#include "base/limits.hpp"
#include "base/log.hpp"
#include "daemon/subscriptions.hpp"

namespace muniment::daemon {
namespace {

std::string request_line(std::int64_t number, std::string_view method, std::string_view params) {
  return json::Writer()
      .begin_object()
      .member("jsonrpc", "2.0")
      .member("id", number)
      .member("method", method)
      .raw_member("params", params)
      .end_object()
      .text();
}

}  // namespace

McpPeer::McpPeer(McpHost& host, gateway::Caller caller, Link link)
    : host_(host), caller_(std::move(caller)), link_(std::move(link)) {
  session_ = std::make_shared<mcp::Session>(host_.server(), *this,
                                            mcp::SessionOptions{caller_.actor, host_.records(), {}}, link_.send);
}

bool McpPeer::may_send() const { return unread_bytes() <= limits::unread_bytes_per_connection_max; }

void McpPeer::send(std::string line) {
  if (closed_) return;
  const auto document = json::parse(line, limits::reply_depth_max);
  if (!document) return log_error("an MCP session lost a notification", {{"error", document.error().message}});
  session_->notified(document->root());
  if (host_.on_waiting && !session_->idle()) host_.on_waiting();
}

std::int64_t McpPeer::request(std::string_view method, std::string params, Done done) {
  const std::int64_t number = next_++;
  pending_.emplace(number, Pending{std::move(done), nullptr});
  std::weak_ptr<McpPeer> weak = weak_from_this();
  auto reply = [weak, number](std::string line) {
    if (const auto peer = weak.lock()) peer->take_reply(number, std::move(line));
  };
  auto admitted = host_.dispatcher().admit(request_line(number, method, params), caller_, std::move(reply));
  if (!admitted.exchange) return number;  // refused and already answered
  pending_.at(number).exchange = admitted.exchange;
  if (host_.on_waiting) host_.on_waiting();
  if (admitted.subscription) {
    host_.subscriptions().serve(shared_from_this(), admitted.exchange);
  } else {
    host_.dispatcher().run(admitted.exchange);
  }
  return number;
}

void McpPeer::take_reply(std::int64_t number, std::string line) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  const Done done = std::move(found->second.done);
  pending_.erase(found);
  auto document = json::parse(line, limits::reply_depth_max);
  if (!document) {
    line = gateway::error_line(
        "null", Error(Errc::system_error, "the daemon cannot read its own reply: " + document.error().message));
    document = json::parse(line);
  }
  done({document->root()["result"], document->root()["error"]});
  leave_when_idle();
}

void McpPeer::cancel(std::int64_t number) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  const gateway::ExchangePtr exchange = found->second.exchange;
  pending_.erase(found);
  if (exchange) host_.dispatcher().give_up(exchange);
}

// Another user's folders would be read with the rights of the daemon's user.
void McpPeer::add_folders(const std::vector<std::string>& folders) {
  if (!caller_.admin || folders.empty()) return;
  std::vector<std::string> all = *caller_.folders;
  if (all.size() + folders.size() > 2 * limits::mcp_folders_max) return;  // the setting's and one session's
  all.insert(all.end(), folders.begin(), folders.end());
  caller_.folders = std::make_shared<const std::vector<std::string>>(std::move(all));
}

// Deferred, because a send that fails closes its session while the session is still working.
void McpPeer::close() {
  if (std::exchange(closed_, true)) return;
  host_.dispatcher().post_to_loop([self = shared_from_this()] { self->finish(); });
}

void McpPeer::finish() {
  host_.stopping() ? session_->abandon() : session_->close();
  host_.subscriptions().closed(*this);
  self_ = shared_from_this();
  leave_when_idle();
}

void McpPeer::leave_when_idle() {
  if (self_ && pending_.empty()) host_.dispatcher().post_to_loop([self = std::exchange(self_, nullptr)] {});
}

McpHost::McpHost(Clock& clock, gateway::Dispatcher& dispatcher, Subscriptions& subscriptions,
                 mcp::ServerOptions options, bool record, std::vector<std::string> folders)
    : dispatcher_(dispatcher),
      subscriptions_(subscriptions),
      server_(clock, std::move(options)),
      record_(record),
      folders_(std::make_shared<const std::vector<std::string>>(std::move(folders))) {}

std::shared_ptr<McpPeer> McpHost::open(gateway::Caller caller, bool trusted, McpPeer::Link link) {
  caller.folders = trusted ? folders_ : std::make_shared<const std::vector<std::string>>();
  auto peer = std::make_shared<McpPeer>(*this, std::move(caller), std::move(link));
  std::erase_if(peers_, [](const auto& weak) { return weak.expired(); });
  peers_.push_back(peer);
  return peer;
}

void McpHost::stop() {
  stopping_ = true;
  for (const auto& weak : std::vector(peers_)) {
    if (const auto peer = weak.lock()) peer->session().abandon();
  }
}

bool McpHost::tick() {
  const Monotonic now = server_.clock().monotonic();
  bool waiting = false;
  for (const auto& weak : std::vector(peers_)) {
    const auto peer = weak.lock();
    if (!peer) continue;
    peer->session().tick(now);
    waiting = waiting || !peer->session().idle();
  }
  return waiting;
}

}  // namespace muniment::daemon
