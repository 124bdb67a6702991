// Implements the phases of a connection: request, answer, end.
#include "http/connection.hpp"

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <uv.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.hpp"
#include "http/engine.hpp"
#include "http/exchange.hpp"
#include "http/framing.hpp"

namespace muniment::http {
namespace {

constexpr std::size_t kept_capacity_bytes_max = 64 * 1024;  // for a stream whose events have been sent
constexpr std::size_t block_bytes = 4 * 1024;               // for an event stream to an HTTP/1.0 client

Answer refusal(int status, std::string text) {
  text.push_back('\n');
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(text)};
}

Answer body_too_large(std::size_t bytes_max) {
  Answer answer = refusal(413, fmt::format("the request's body is over {} bytes", bytes_max));
  answer.headers.push_back({"Connection", "close"});
  return answer;
}

MHD_Result add_header(void* headers, MHD_ValueKind, const char* name, std::size_t name_bytes, const char* value,
                      std::size_t value_bytes) {
  const std::string_view shown = value == nullptr ? std::string_view() : std::string_view(value, value_bytes);
  static_cast<std::vector<Header>*>(headers)->push_back({std::string(name, name_bytes), std::string(shown)});
  return MHD_YES;
}

bool add_headers(MHD_Response* response, const std::vector<Header>& headers) {
  return std::all_of(headers.begin(), headers.end(), [response](const Header& one) {
    return one.value.empty() || MHD_add_response_header(response, one.name.c_str(), one.value.c_str()) == MHD_YES;
  });
}

MHD_Response* response_of(std::string body) {
  auto kept = std::make_unique<std::string>(std::move(body));
  MHD_Response* const made = MHD_create_response_from_buffer_with_free_callback_cls(
      kept->size(), kept->data(), [](void* text) { delete static_cast<std::string*>(text); }, kept.get());
  if (made != nullptr) static_cast<void>(kept.release());
  return made;
}

}  // namespace

// MHD does not detect that the client of a suspended connection disconnects. It also misses a shutdown that arrives
// together with data.
Connection::Connection(Engine& engine, MHD_Connection* mhd, int socket, std::uint64_t number)
    : engine_(engine), mhd_(mhd), socket_(socket), number_(number), watch_(new_poll(engine.loop(), socket, this)) {
  await_head();
  if (watch_ == nullptr) return;
  uv_poll_start(watch_.get(), UV_DISCONNECT, [](uv_poll_t* handle, int, int) {
    uv_poll_stop(handle);
    static_cast<Connection*>(handle->data)->client_left();
  });
}

Connection::~Connection() { set_deadline(0); }

void Connection::begin(std::string_view target) {
  const std::size_t question = target.find('?');
  request_.target = target;
  request_.path = target.substr(0, question);
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
}

bool Connection::receive(std::string_view method, std::string_view data) {
  if (aborted_) return false;
  switch (phase_) {
    case Phase::head: return take_head(method);
    case Phase::body: return data.empty() ? handle() : take_body(data);
    case Phase::handling: return answer();
    case Phase::answering: break;
  }
  return false;
}

bool Connection::take_head(std::string_view method) {
  request_.method = method;
  MHD_get_connection_values_n(mhd_, MHD_HEADER_KIND, add_header, &request_.headers);
  request_.peer = address_text(MHD_get_connection_info(mhd_, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
  begin_phase(Phase::body);
  set_deadline_for(0);
  if (const auto wrong = malformed(request_)) return queue(refusal(400, *wrong));
  const Options& options = engine_.options();
  if (MHD_get_connection_info(mhd_, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size > options.head_bytes_max) {
    return queue(refusal(431, fmt::format("the request's head is over {} bytes", options.head_bytes_max)));
  }
  if (options.refuse) refusal_ = options.refuse(request_);
  const bool known = !refusal_ && !(options.is_open_to_all && options.is_open_to_all(request_));
  if (known && std::exchange(stranger_, false)) engine_.no_stranger(*this);
  if (!refusal_ && announced_bytes(request_).value_or(0) > options.body_bytes_max) {
    refusal_ = body_too_large(options.body_bytes_max);
  }
  if (refusal_ && !read_away()) return queue(*refusal_);
  return true;
}

// Most clients read an answer only after sending the whole body. A client that waits for 100 Continue reads it at once;
// its connection is closed then, as for a body that is too long to read.
bool Connection::read_away() const {
  const auto bytes = announced_bytes(request_);
  if (bytes == 0U) return true;
  return !request_.header("Expect") && bytes.value_or(0) <= limits::refused_body_drained_bytes_max;
}

bool Connection::take_body(std::string_view data) {
  body_bytes_ += data.size();
  if (!refusal_) set_deadline_for(body_bytes_);  // a refused body is limited to the idle time, whatever its speed
  if (!refusal_ && body_bytes_ > engine_.options().body_bytes_max) {
    refusal_ = body_too_large(engine_.options().body_bytes_max);
  } else if (!refusal_ && !engine_.count_body(data.size())) {
    refusal_ = refusal(503, "the server holds too many requests; retry in a second");
    refusal_->headers.push_back({"Retry-After", "1"});
  }
  if (refusal_) {
    request_.body = std::string();
    return body_bytes_ <= limits::refused_body_drained_bytes_max;
  }
  counted_bytes_ += data.size();
  request_.body.append(data);
  return true;
}

bool Connection::handle() {
  if (refusal_) return queue(*refusal_);
  begin_phase(Phase::handling);
  std::shared_ptr<Exchange> exchange(new Exchange(*this, std::move(request_)));
  exchange_ = exchange;
  engine_.handle(std::move(exchange));
  return answer();
}

bool Connection::queue(const Answer& refusal) {
  kind_ = Kind::reply;
  status_ = refusal.status;
  response_ = response_of(refusal.body);
  response_bytes_ = refusal.body.size();
  if (response_ == nullptr || !add_headers(response_, refusal.headers)) return false;
  return answer();
}

bool Connection::answer() {
  if (aborted_) return false;  // the handler aborted it
  if (response_ == nullptr) {
    suspend();
    return true;
  }
  begin_phase(Phase::answering);
  if (kind_ == Kind::reply) set_deadline_for(response_bytes_);
  const MHD_Result queued = MHD_queue_response(mhd_, static_cast<unsigned>(status_), response_);
  MHD_destroy_response(std::exchange(response_, nullptr));
  return queued == MHD_YES;
}

void Connection::reply(Answer answer) {
  if (kind_ != Kind::none) return;
  kind_ = Kind::reply;
  response_bytes_ = answer.body.size();
  MHD_Response* response = response_of(std::move(answer.body));
  if (response != nullptr && !add_headers(response, answer.headers)) {
    MHD_destroy_response(response);
    answer.status = 500;
    response = response_of("a header of the answer cannot be written\n");
  }
  prepare(answer.status, response);
}

void Connection::begin_events(int status, std::vector<Header> headers) {
  if (kind_ != Kind::none) return;
  headers.insert(headers.end(),
                 {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}});
  const auto read = [](void* self, std::uint64_t, char* buffer, std::size_t bytes_max) -> ssize_t {
    return static_cast<Connection*>(self)->read_events(buffer, bytes_max);
  };
  MHD_Response* const response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block_bytes, read, this, nullptr);
  if (response != nullptr && !add_headers(response, headers)) {
    MHD_destroy_response(response);
    return reply({500, {}, "a header of the answer cannot be written\n"});
  }
  kind_ = Kind::events;
  prepare(status, response);
}

void Connection::prepare(int status, MHD_Response* response) {
  if (response == nullptr) return abort();  // out of memory
  status_ = status;
  response_ = response;
  resume();
  if (kind_ == Kind::reply) count_answer(response_bytes_);
}

bool Connection::send(std::string_view bytes) {
  if (kind_ != Kind::events || aborted_) return false;
  if (unread_bytes() > engine_.options().unread_bytes_max) {
    abort_slow();
    return false;
  }
  unread_.append(bytes);
  resume();
  count_answer(unread_bytes());
  return !aborted_;
}

void Connection::end_events() {
  if (kind_ != Kind::events) return;
  kind_ = Kind::ended_events;
  resume();
}

void Connection::release() {
  if (kind_ == Kind::none) return reply(refusal(500, "the server failed to answer this request"));
  end_events();
}

std::int64_t Connection::read_events(char* buffer, std::size_t bytes_max) {
  if (aborted_) return MHD_CONTENT_READER_END_WITH_ERROR;
  const std::size_t size = std::min(bytes_max, unread_bytes());
  if (size == 0) {
    if (kind_ == Kind::ended_events) return MHD_CONTENT_READER_END_OF_STREAM;
    suspend();
    return 0;
  }
  std::memcpy(buffer, unread_.data() + unread_begin_, size);
  unread_begin_ += size;
  count_answer(unread_bytes());
  if (unread_begin_ == unread_.size()) {
    unread_begin_ = 0;
    unread_.clear();
    if (unread_.capacity() > kept_capacity_bytes_max) unread_ = std::string();
  } else if (unread_begin_ > kept_capacity_bytes_max) {
    unread_.erase(0, std::exchange(unread_begin_, 0));
  }
  return static_cast<std::int64_t>(size);
}

void Connection::finish(bool complete) {
  detach(complete && (kind_ == Kind::reply || kind_ == Kind::ended_events));
  if (response_ != nullptr) MHD_destroy_response(std::exchange(response_, nullptr));
  engine_.discount_body(std::exchange(counted_bytes_, 0));
  kind_ = Kind::none;
  body_bytes_ = 0;
  refusal_.reset();
  request_ = {};
  unread_ = std::string();
  unread_begin_ = 0;
  count_answer(0);
  await_head();
  if (left_) abort();
}

// A client that shuts down only its own direction and keeps reading receives the reply in progress.
void Connection::client_left() {
  left_ = true;
  if (phase_ != Phase::answering || kind_ != Kind::reply) engine_.abort(*this);
}

void Connection::detach(bool complete) {
  const auto exchange = std::exchange(exchange_, {}).lock();
  if (exchange == nullptr) return;
  exchange->connection_ = nullptr;
  if (!complete) return engine_.lose(exchange);
  exchange->on_closed = nullptr;  // it may own the exchange
}

void Connection::abort() {
  if (std::exchange(aborted_, true)) return;
  ::shutdown(socket_, SHUT_RDWR);
  unread_ = std::string();
  unread_begin_ = 0;
  count_answer(0);
  detach(false);
  resume();
}

void Connection::abort_slow() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  set_deadline(0);
  abort();
}

void Connection::suspend() {
  suspended_ = true;
  MHD_suspend_connection(mhd_);
}

void Connection::resume() {
  if (!std::exchange(suspended_, false)) return;
  MHD_resume_connection(mhd_);
  engine_.run_soon();
}

void Connection::await_head() {
  begin_phase(Phase::head);
  const std::int64_t head_ms = 2 * engine_.idle_ms();
  const std::int64_t stranger_ms = std::chrono::milliseconds(engine_.options().stranger_idle).count();
  set_deadline(began_ms_ + (stranger_ ? std::min(head_ms, stranger_ms) : head_ms));
}

void Connection::begin_phase(Phase phase) {
  phase_ = phase;
  began_ms_ = Engine::now_ms();
  set_deadline(0);
}

void Connection::count_answer(std::size_t bytes) {
  const std::size_t before = std::exchange(answer_bytes_, bytes);
  engine_.count_answers(before, bytes);
}

void Connection::set_deadline(std::int64_t new_ms) {
  engine_.move_deadline(*this, std::exchange(deadline_ms_, new_ms), new_ms);
}

// Sets the time by which this number of bytes, counted from the start of the phase, must have been transferred.
void Connection::set_deadline_for(std::size_t bytes) {
  set_deadline(began_ms_ + engine_.idle_ms() +
               static_cast<std::int64_t>(bytes * 1'000 / limits::http_bytes_per_second_min));
}

}  // namespace muniment::http
