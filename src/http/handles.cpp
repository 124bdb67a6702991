// Creates and closes libuv handles.
#include "http/handles.hpp"

#include <uv.h>

namespace muniment::http {
namespace {

template <typename T>
void close_handle(T* handle) {
  uv_close(reinterpret_cast<uv_handle_t*>(handle), [](uv_handle_t* closed) { delete reinterpret_cast<T*>(closed); });
}

}  // namespace

void CloseHandle::operator()(uv_poll_s* handle) const { close_handle(handle); }
void CloseHandle::operator()(uv_timer_s* handle) const { close_handle(handle); }
void CloseHandle::operator()(uv_idle_s* handle) const { close_handle(handle); }

Handle<uv_poll_s> new_poll(uv_loop_s* loop, int descriptor, void* data) {
  auto made = std::make_unique<uv_poll_t>();
  if (uv_poll_init(loop, made.get(), descriptor) != 0) return nullptr;
  made->data = data;
  return Handle<uv_poll_s>(made.release());
}

Handle<uv_timer_s> new_timer(uv_loop_s* loop, void* data) {
  auto made = std::make_unique<uv_timer_t>();
  uv_timer_init(loop, made.get());
  made->data = data;
  return Handle<uv_timer_s>(made.release());
}

Handle<uv_idle_s> new_idle(uv_loop_s* loop, void* data) {
  auto made = std::make_unique<uv_idle_t>();
  uv_idle_init(loop, made.get());
  made->data = data;
  return Handle<uv_idle_s>(made.release());
}

}  // namespace muniment::http
