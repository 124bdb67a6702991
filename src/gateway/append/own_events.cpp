// Appends the daemon's own events to the run _log.
#include "gateway/append/own_events.hpp"

#include "store/append/own_event.hpp"

namespace muniment::gateway {

void append_own(Services& services, std::string_view type, std::string body, bool patient) {
  store::AppendRequest request = store::own_request(services.runs, type, std::move(body), services.clock.now());
  request.patient = patient;
  services.appender.submit(std::move(request)).ok();
}

void append_refusals(Services& services, bool all) {
  for (std::string& body : services.refusals.take(services.clock.now(), all))
    append_own(services, "access.refused", std::move(body), true);
}

}  // namespace muniment::gateway
