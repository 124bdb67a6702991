#include "store/append/own_event.hpp"

#include "events/catalogue.hpp"

namespace muniment::store {

events::NewEvent own_event(std::string_view type, std::string body, Time now) {
  events::NewEvent event;
  event.type = type;
  event.origin = events::Origin::observed;
  event.event_id = make_uuid_v7(now);
  event.event_id_is_ours = true;
  event.body = std::move(body);
  events::seal_own(event);
  return event;
}

AppendRequest own_request(const RunDirectory& runs, std::string_view type, std::string body, Time now) {
  AppendRequest request;
  request.actor = events::daemon_actor;
  request.events.push_back({runs.find(log_run_id), own_event(type, std::move(body), now), false});
  return request;
}

}  // namespace muniment::store
