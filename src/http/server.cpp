// Forwards the public interface of the server to its engine.
#include "http/server.hpp"

#include <utility>

#include "http/engine.hpp"

namespace muniment::http {

Result<std::unique_ptr<Server>> Server::listen(uv_loop_t* loop, Options options, Handler handler) {
  auto engine = std::make_shared<Engine>(loop, std::move(options), std::move(handler));
  RETURN_IF_ERROR(engine->start());
  return std::unique_ptr<Server>(new Server(std::move(engine)));
}

Server::Server(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
Server::~Server() { close(); }

std::uint16_t Server::port() const { return engine_->port(); }
std::size_t Server::connections() const { return engine_->connections(); }
bool Server::answering() const { return engine_->answering(); }
void Server::stop_accepting() { engine_->stop_accepting(); }
void Server::close() { engine_->close(); }

}  // namespace muniment::http
