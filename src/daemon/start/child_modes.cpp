// Runs the process as the child that its command line names.
#include "daemon/start/child_modes.hpp"

#include <pthread.h>

#include <cstdlib>
#include <string_view>

#include "base/log.hpp"
#include "base/process/spawn.hpp"
#include "bridge/cloud/provider.hpp"
#include "retrieval/child/search/search_child.hpp"
#include "retrieval/child/tool_child.hpp"

namespace muniment::daemon {

std::optional<int> serve_as_child(int argc, const char* const* argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (const char* const settings = std::getenv("MUNIMENT_LOG"); settings != nullptr && what.starts_with("--"))
    take_log_settings(settings);
  if (what == "--search-child") {
    ::pthread_setname_np(::pthread_self(), "muniment-search");
    return retrieval::serve_search({}, first_handed_over);
  }
  if (what == "--text-child") {
    ::pthread_setname_np(::pthread_self(), "muniment-text");
    return retrieval::serve_tool(first_handed_over);
  }
  if (what == "--cloud-child") {
    ::pthread_setname_np(::pthread_self(), "muniment-cloud");
    return bridge::serve_cloud(first_handed_over, first_handed_over + 1);
  }
  return std::nullopt;
}

}  // namespace muniment::daemon
