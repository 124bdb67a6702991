#include <future>
#include <memory>

#include "store/appender.hpp"

namespace muniment::store {

Result<std::vector<events::Receipt>> append_and_wait(Appender& appender, AppendRequest request, std::chrono::milliseconds at_most) {
  using Answer = Result<std::vector<events::Receipt>>;
  auto answered = std::make_shared<std::promise<Answer>>();   // it may be answered after we gave up
  auto answer = answered->get_future();
  request.done = [answered](Answer receipts) { answered->set_value(std::move(receipts)); };
  RETURN_IF_ERROR(appender.submit(std::move(request)));
  if (answer.wait_for(at_most) == std::future_status::ready) return answer.get();
  return Error(Errc::unavailable, "the append was not answered");
}

}  // namespace muniment::store
