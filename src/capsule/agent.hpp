// A loop of an agent over a capsule: a hook, a program that may ask a model, reads the conversation and the tools and
// answers with a message; the tools that it calls run, and their results follow in the conversation, until it calls
// none. Every turn is a log frame before the next one begins, so that an interrupted conversation continues.
//
//   the hook reads   {"messages": […], "tools": […], "session": "…"}
//   and writes       {"message": {"role": "assistant", "content": "…", "tool_calls": [{"id", "name", "arguments"}]}}
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "capsule/rpc.hpp"

namespace muniment::capsule {

struct AgentOptions {
  std::vector<std::string> hook;    // argv[0] is an absolute path
  std::string session;              // name of the conversation
  std::string prompt;               // what the user says; empty: the conversation continues where it was interrupted
  std::string context;              // for the model, before the conversation; empty: none
  std::size_t steps_max = 16;       // runs of the hook
  std::size_t bytes_max = 4 << 20;  // of what the hook reads
  std::chrono::seconds time_max{300};
  std::function<void(std::string_view tool, bool failed)> on_tool;  // after each call
};

struct AgentEnd {
  std::string content;    // of the last message of the hook
  std::size_t steps = 0;  // runs of the hook
};

// Errors: invalid_argument if there is nothing to answer; over_budget if a bound is reached, deadline_exceeded for that
// of time; unavailable if the hook fails. After each of them the conversation can be continued.
Result<AgentEnd> run_agent(Server& server, const AgentOptions& options);

}  // namespace muniment::capsule
