// Implements append_and_wait (appender.hpp): blocks the calling thread until the append is answered.
#include <future>
#include <memory>

#include "store/append/appender.hpp"

namespace muniment::store {

Result<std::vector<events::Receipt>> append_and_wait(Appender& appender, AppendRequest request,
                                                     std::chrono::milliseconds at_most) {
  using Answer = Result<std::vector<events::Receipt>>;
  auto answered = std::make_shared<std::promise<Answer>>();  // shared, because the answer may arrive after the deadline
  auto answer = answered->get_future();
  request.done = [answered](Answer receipts) { answered->set_value(std::move(receipts)); };
  Error late(Errc::unavailable, "the append was not answered in time");
  late.outcome = "unknown";
  for (const Addressed& item : request.events) late.event_ids.push_back(item.event.event_id.text());
  RETURN_IF_ERROR(appender.submit(std::move(request)));
  if (answer.wait_for(at_most) == std::future_status::ready) return answer.get();
  return late;
}

}  // namespace muniment::store
