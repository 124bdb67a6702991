// How long a request is said to be, and whether every server between the client and this one must agree on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "http/request.hpp"

namespace muniment::http {

// Describes a fault of the target, the headers' names or the body's length; nullopt: none. A proxy that
// reads such a request in another way than this server takes its end for another request (request smuggling).
std::optional<std::string> malformed(const Request& request);

// The body's Content-Length; 0 if there is no body, nullopt if it is sent in chunks. Of a request that is not
// malformed.
std::optional<std::uint64_t> announced_bytes(const Request& request);

}  // namespace muniment::http
