#include "gateway/own_events.hpp"

#include "events/event.hpp"

namespace muniment::gateway {

void append_own(Services& services, std::string_view type, std::string body, bool patient) {
  events::NewEvent event;
  event.type = type;
  event.origin = events::Origin::observed;
  event.event_id = make_uuid_v7(services.clock.now());
  event.event_id_is_ours = true;
  event.body = std::move(body);
  events::seal(event);
  store::AppendRequest request;
  request.actor = events::daemon_actor;
  request.patient = patient;
  request.events.push_back({services.runs.find(log_run_id), std::move(event), false});
  services.appender.submit(std::move(request)).ok();
}

void append_refusals(Services& services, bool all) {
  for (std::string& body : services.refusals.take(services.clock.now(), all)) append_own(services, "access.refused", std::move(body), true);
}

}  // namespace muniment::gateway
