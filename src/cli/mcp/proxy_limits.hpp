// Limits and patience that the proxies share, and the codes of JSON-RPC that they answer with.
#pragma once

#include <chrono>
#include <cstddef>

namespace muniment::cli::proxy {

inline constexpr std::size_t waiting_bytes_max = 8U << 20;   // of one direction; then its sender is not read
inline constexpr std::size_t message_bytes_max = 64U << 20;  // of a message that is held in memory

inline constexpr std::chrono::seconds reconnect_patience{30};  // of the host's session
inline constexpr std::chrono::seconds record_patience{10};     // of an event, from its making to its acknowledgement
inline constexpr std::chrono::seconds end_patience{5};         // of each step of an end

inline constexpr int invalid_request = -32600;
inline constexpr int internal_error = -32603;

}  // namespace muniment::cli::proxy
