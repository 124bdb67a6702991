// Sends what a recorder has to say, and brings the run into the state for it: started where it is not there, reopened
// where it had ended. Everything has ids of its own, so that a delivery may be repeated.
#pragma once

#include "cli/connect/client.hpp"
#include "cli/record/hook.hpp"

namespace muniment::cli {

// Errors: the daemon's own; run_halted where the run is stopped. After a transient one the outcome may be unknown.
Status deliver(Client& client, const Delivery& delivery);

}  // namespace muniment::cli
