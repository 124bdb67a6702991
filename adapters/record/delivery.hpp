// Sends the events of a recorder; starts the run if it does not exist and reopens it if it has ended. All requests have
// ids, so a delivery can be repeated.
#pragma once

#include "adapters/record/hook.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

// Errors: those of the daemon; run_halted if the run is halted. After a transient error the outcome may be unknown.
Status deliver(Client& client, const Delivery& delivery);

}  // namespace muniment::cli
