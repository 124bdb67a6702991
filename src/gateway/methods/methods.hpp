// The methods, one function each, by the file that holds them; method_table.cpp names them.
#pragma once

#include "gateway/call.hpp"

namespace muniment::gateway::methods {

// events.cpp
Result<Answer> event_append(Call& call);

// event_pages.cpp
Result<Answer> event_get(Call& call);
Result<Answer> event_list(Call& call);

// run_start.cpp
Result<Answer> run_start(Call& call);

// runs.cpp
Result<Answer> run_annotate(Call& call);
Result<Answer> run_end(Call& call);

// run_pages.cpp
Result<Answer> run_get(Call& call);
Result<Answer> run_list(Call& call);

// server.cpp
Result<Answer> server_health(Call& call);
Result<Answer> server_metrics(Call& call);
Result<Answer> server_status(Call& call);

}  // namespace muniment::gateway::methods
