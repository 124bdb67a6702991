// Entry point of `muniment-operator`, which `muniment` starts for the commands of operators, auditors and analysts.
#include "cli/commands.hpp"
#include "client/program.hpp"

namespace {

namespace cli = muniment::cli;

constexpr cli::Family families[] = {
    {"up down status rebuild config", cli::add_server_commands},
    {"doctor", cli::add_doctor_command},
    {"model", cli::add_model_commands},
    {"metrics", cli::add_metrics_command},
    {"top", cli::add_top_command},
    {"audit", cli::add_audit_commands},
    {"backup restore", cli::add_backup_commands},
    {"export", cli::add_export_command},
    {"sql", cli::add_sql_command},
    {"cost", cli::add_cost_command},
    {"retention", cli::add_retention_commands},
    {"disk", cli::add_disk_command},
};

}  // namespace

int main(int argc, char** argv) {
  cli::open_standard_streams();
  return cli::run_program({families, {}, false}, argc, argv, {});
}
