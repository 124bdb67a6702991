// Formats server-sent events, and passes answers to the connection.
#include "http/exchange.hpp"

#include <utility>

#include "http/connection.hpp"

namespace muniment::http {
namespace {

// A client also ends a "data:" line at a carriage return, after which the text would be parsed as a field.
std::string event_of(std::string_view data) {
  std::string event;
  event.reserve(data.size() + 16);
  for (;;) {
    const std::size_t end = data.find_first_of("\r\n");
    event.append("data: ").append(data.substr(0, end)).push_back('\n');
    if (end == std::string_view::npos) break;
    data.remove_prefix(data.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
  event.push_back('\n');
  return event;
}

}  // namespace

Exchange::Exchange(Connection& connection, Request request) : connection_(&connection), request_(std::move(request)) {}

Exchange::~Exchange() {
  if (connection_ != nullptr) connection_->release();
}

void Exchange::reply(int status, std::vector<Header> headers, std::string body) {
  if (connection_ != nullptr) connection_->reply({status, std::move(headers), std::move(body)});
}

void Exchange::begin_events(int status, std::vector<Header> headers) {
  if (connection_ != nullptr) connection_->begin_events(status, std::move(headers));
}

bool Exchange::send_event(std::string_view data) { return connection_ != nullptr && connection_->send(event_of(data)); }

void Exchange::send_comment() {
  if (connection_ != nullptr) connection_->send(":\n\n");
}

void Exchange::end_events() {
  if (connection_ != nullptr) connection_->end_events();
}

std::size_t Exchange::unread_bytes() const { return connection_ == nullptr ? 0 : connection_->unread_bytes(); }

}  // namespace muniment::http
