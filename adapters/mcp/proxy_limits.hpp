// Limits, time limits and JSON-RPC error codes that the proxies share.
#pragma once

#include <chrono>
#include <cstddef>

namespace muniment::cli::proxy {

inline constexpr std::size_t waiting_bytes_max = 8U
                                                 << 20;  // queued bytes per direction; above it the sender is not read
inline constexpr std::size_t message_bytes_max = 64U << 20;  // size of a message held in memory

inline constexpr std::chrono::seconds reconnect_patience{30};  // time for the session of the host
inline constexpr std::chrono::seconds record_patience{10};  // time per event, from its creation to its acknowledgement
inline constexpr std::chrono::seconds end_patience{5};      // time for each step of the shutdown

inline constexpr int invalid_request = -32600;
inline constexpr int internal_error = -32603;

}  // namespace muniment::cli::proxy
