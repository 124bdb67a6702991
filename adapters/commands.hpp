// Declares the commands of `muniment-adapters`, one file per family.
#pragma once

#include "client/command.hpp"

namespace muniment::cli {

void add_import_command(CLI::App& app, Session& session);  // import
void add_mcp_command(CLI::App& app, Session& session);     // mcp
void add_otlp_command(CLI::App& app, Session& session);    // otlp

// Declares the command record. `follow` implements --follow; the hook program, which does not follow files, passes
// none.
using FollowFile = Status (*)(Session& session, const std::string& file);
void add_record_command(CLI::App& app, Session& session, FollowFile follow);
void make_record_command(CLI::App& app, Session& session);  // makes record a separate program
Status follow_file(Session& session, const std::string& file);

}  // namespace muniment::cli
