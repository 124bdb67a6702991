// Iterates over lists that the daemon returns in pages.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

inline std::string with_cursor(std::string_view params, std::string_view cursor) {
  std::string text(params.substr(0, params.rfind('}')));
  return text + (text == "{" ? "" : ",") + "\"cursor\":" + json::quote(cursor) + "}";
}

// Calls `show` with each item of the result's `list`, page by page, until it returns false or an error. `params` is a
// JSON object without a cursor; `caller` is a Session or a Client.
template <typename Caller, typename Show>
Status each_item(Caller& caller, std::string_view method, const std::string& params, std::string_view list, Show show) {
  std::string cursor;
  do {
    ASSIGN_OR_RETURN(const Message page, caller.call(method, cursor.empty() ? params : with_cursor(params, cursor)));
    for (const json::Value item : page.result()[list]) {
      const Result<bool> goes_on = show(item);
      if (!goes_on) return goes_on.error();
      if (!*goes_on) return success();
    }
    cursor = page.result()["cursor"].string_or("");
  } while (!cursor.empty());
  return success();
}

}  // namespace muniment::cli
