// Handles of libuv that close themselves: the loop frees one in its next turn.
#pragma once

#include <memory>

struct uv_idle_s;
struct uv_loop_s;
struct uv_poll_s;
struct uv_timer_s;

namespace muniment::http {

struct CloseHandle {
  void operator()(uv_poll_s* handle) const;
  void operator()(uv_timer_s* handle) const;
  void operator()(uv_idle_s* handle) const;
};
template <typename T>
using Handle = std::unique_ptr<T, CloseHandle>;

// Each handle has `data` as its data. Null: the descriptor cannot be polled.
Handle<uv_poll_s> new_poll(uv_loop_s* loop, int descriptor, void* data);
Handle<uv_timer_s> new_timer(uv_loop_s* loop, void* data);
Handle<uv_idle_s> new_idle(uv_loop_s* loop, void* data);

}  // namespace muniment::http
