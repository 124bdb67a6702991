// Determines the length of a request's body, and refuses requests that two servers could frame differently.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "http/request.hpp"

namespace muniment::http {

// Returns a description of the fault in the target, the header names or the body length; nullopt if there is none. A
// proxy that frames such a request differently would take its end for another request (request smuggling).
std::optional<std::string> malformed(const Request& request);

// Returns the body's Content-Length: 0 if there is no body, nullopt if it is chunked. The request must not be
// malformed.
std::optional<std::uint64_t> announced_bytes(const Request& request);

}  // namespace muniment::http
