#include "base/result.hpp"

namespace muniment {

std::string_view name_of(Errc code) {
  switch (code) {
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::not_found: return "not_found";
    case Errc::conflict: return "conflict";
    case Errc::denied: return "denied";
    case Errc::over_budget: return "over_budget";
    case Errc::too_large: return "too_large";
    case Errc::run_halted: return "run_halted";
    case Errc::unavailable: return "unavailable";
    case Errc::deadline_exceeded: return "deadline_exceeded";
    case Errc::corrupt: return "corrupt";
    case Errc::system_error: return "system_error";
  }
  return "system_error";
}

int rpc_code_of(Errc code) { return -32001 - static_cast<int>(code); }

bool is_transient(Errc code) { return code == Errc::unavailable || code == Errc::deadline_exceeded; }

bool is_halting(Errc code) { return code == Errc::corrupt || code == Errc::system_error; }

Error&& Error::within(std::string_view context) && {
  message.insert(0, ": ").insert(0, context);
  return std::move(*this);
}

}  // namespace muniment
