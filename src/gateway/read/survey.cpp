// Lists the damaged dependencies of a run.
#include "gateway/read/survey.hpp"

#include <utility>

#include "evidence/pointer_follower.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {

Result<Survey> survey(Call& call, const store::Run& run) {
  ASSIGN_OR_RETURN(auto needed, evidence::pointers_needed_by(run, call.services.tail, *call.reader));
  if (const auto halt = run.view().halt; halt && !halt->pointer.empty()) needed[halt->pointer];
  evidence::Resolver resolver(*call.reader, call.services.files, sight_of_every_owner(call));
  Survey survey;
  for (const auto& [pointer, needed_by] : needed) {
    ASSIGN_OR_RETURN(evidence::Resolution found, resolver.resolve(pointer, evidence::Depth::whole));
    ++survey.checked;
    if (!found.damaged()) continue;  // a superseded revision is intact, and erased content is not missing
    Damage& damage = survey.damage.emplace_back();
    damage.found = std::move(found);
    for (const store::PointerRow& row : needed_by)
      damage.needed_by.push_back(row.needed_by + " " + row.needed_id.text());
  }
  return survey;
}

}  // namespace muniment::gateway
