#include "client/examples.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace muniment::cli {
namespace {

constexpr std::string_view example_head = "Example:\n  ";

// Example by the path of its command.
constexpr std::pair<std::string_view, std::string_view> examples[] = {
    {"log", "muniment --capsule notes.mv2 log user 'Where is the plan?'"},
    {"agent", "muniment --capsule notes.mv2 agent 'Where is the plan?' -- /usr/bin/python3 hook.py"},
    {"capsule", "muniment capsule info notes.mv2"},
    {"capsule info", "muniment capsule info notes.mv2"},
    {"capsule verify", "muniment capsule verify notes.mv2"},
    {"capsule diff", "muniment capsule diff mine.mv2 yours.mv2"},
    {"capsule merge", "muniment capsule merge mine.mv2 yours.mv2 -o ours.mv2"},
    {"capsule key", "muniment capsule key alice.example -o alice.key"},
    {"capsule sign", "muniment capsule sign notes.mv2 --key alice.key"},
    {"capsule export", "muniment capsule export notes.mv2 --corpus notes --sign alice.key"},
    {"capsule import", "muniment capsule import notes.mv2 --corpus notes"},
    {"capsule trust", "muniment capsule trust notes.mv2"},
    {"capsule encrypt", "muniment capsule encrypt notes.mv2 -o notes.mv2.enc"},
    {"capsule decrypt", "muniment capsule decrypt notes.mv2.enc -o notes.mv2"},
    {"capsule compact", "muniment capsule compact notes.mv2"},
    {"up", "muniment up --data /srv/muniment"},
    {"down", "muniment down"},
    {"status", "muniment status"},
    {"rebuild", "muniment rebuild artifact claim"},
    {"config", "muniment config print"},
    {"config print", "muniment config print"},
    {"config check", "muniment config check --config /etc/muniment/muniment.toml"},
    {"cost", "muniment cost --by month,agent --since 2026-01-01"},
    {"disk", "muniment disk"},
    {"retention", "muniment retention preview --at 2027-01-31"},
    {"retention preview", "muniment retention preview --at 2027-01-31"},
    {"retention apply", "muniment retention apply"},
    {"doctor", "muniment doctor"},
    {"model", "muniment model list"},
    {"model install", "muniment model install bge-small-en-v1.5"},
    {"model list", "muniment model list"},
    {"metrics", "muniment metrics | grep muniment_follower_lag_events"},
    {"top", "muniment top --once"},
    {"run", "muniment run list --since 1d"},
    {"run start", "muniment run start nightly-17 --agent builder --goal 'Repair the nightly build'"},
    {"run end", "muniment run end nightly-17 --outcome success"},
    {"run list", "muniment run list --status open --since 1d"},
    {"run show", "muniment run show @last --errors"},
    {"run grep", "muniment run grep @last 'Permission denied'"},
    {"run diff", "muniment run diff @last~1 @last"},
    {"run fork", "muniment run fork nightly-17 --at 40"},
    {"run judge", "muniment run judge @last --strict"},
    {"rehydrate", "muniment rehydrate @last --path /working"},
    {"recover", "muniment recover nightly-17 --look"},
    {"why", "muniment why src/main.c --run @last"},
    {"exec", "muniment exec --run nightly-17 -- make test"},
    {"workflow", "muniment workflow run workflow.toml"},
    {"workflow digest", "muniment workflow digest workflow.toml"},
    {"workflow run", "muniment workflow run workflow.toml --task t1"},
    {"validate-code", "muniment validate-code 'Write slugify.py'"},
    {"attestation", "muniment attestation verify test.json --key \"$(tail -n 1 log.pub)\""},
    {"attestation export", "muniment attestation export 01971f2e-6c00-7000-8000-000000000001 --output test.json"},
    {"attestation import", "muniment attestation import test.json --run nightly-17"},
    {"attestation verify", "muniment attestation verify test.json --keys log.pub"},
    {"bead", "muniment bead status"},
    {"bead create", "muniment bead create 'Reject expired tokens'"},
    {"bead attach", "muniment bead attach bd-a1b2 01971f2e-6c00-7000-8000-000000000001"},
    {"bead close", "muniment bead close bd-a1b2"},
    {"bead status", "muniment bead status"},
    {"remember", "muniment remember home 'Kim lives in Porto.' --source run://chat-1"},
    {"recall", "muniment recall 'where does Kim live'"},
    {"forget", "muniment forget home --reason 'Kim moved'"},
    {"memories", "muniment memories"},
    {"history", "muniment history home"},
    {"memory", "muniment memory review"},
    {"memory review", "muniment memory review home --accept"},
    {"mcp", "muniment mcp --record files -- npx @modelcontextprotocol/server-filesystem ."},
    {"otlp", "muniment otlp -- python3 agent.py"},
    {"record", "muniment record claude-code --settings"},
    {"event", "muniment event tail --follow"},
    {"event append", "muniment event append x.acme.deployed '{\"build\": 17}' --run nightly-17"},
    {"event list", "muniment event list --run @last --type 'tool.*' --since 15m"},
    {"event tail", "muniment event tail --run @last --follow"},
    {"artifact", "muniment artifact list --run @last"},
    {"artifact put", "muniment artifact put report.html --run nightly-17"},
    {"artifact get", "muniment artifact get artifact://nightly-17/01971f2e-6c00-7000-8000-000000000001 -o report.html"},
    {"artifact list", "muniment artifact list --run @last --name '*.html'"},
    {"artifact grep", "muniment artifact grep @last 'error:' --name '*.log'"},
    {"snapshot", "muniment snapshot list @last"},
    {"snapshot take", "muniment snapshot take nightly-17"},
    {"snapshot list", "muniment snapshot list @last"},
    {"manifest", "muniment manifest show 01971f2e-6c00-7000-8000-000000000001"},
    {"manifest show", "muniment manifest show 01971f2e-6c00-7000-8000-000000000001"},
    {"claim", "muniment claim list --run @last"},
    {"claim record", "muniment claim record 'The build is green' --run nightly-17 --pointer run://nightly-17"},
    {"claim list", "muniment claim list --run @last"},
    {"claim decide", "muniment claim decide 01971f2e-6c00-7000-8000-000000000001 supported --reason 'Read the log'"},
    {"evidence", "muniment evidence list --run @last"},
    {"evidence add", "muniment evidence add observation --text 'The page loads' --run nightly-17"},
    {"evidence get", "muniment evidence get 01971f2e-6c00-7000-8000-000000000001"},
    {"evidence link",
     "muniment evidence link 01971f2e-6c00-7000-8000-000000000001 01971f2e-6c00-7000-8000-000000000002"},
    {"evidence list", "muniment evidence list --run @last --type test_result"},
    {"evidence check", "muniment evidence check 01971f2e-6c00-7000-8000-000000000001"},
    {"evidence import", "muniment evidence import evidence.json --run nightly-17"},
    {"evidence export", "muniment evidence export 01971f2e-6c00-7000-8000-000000000001 --into evidence/"},
    {"evidence verify", "muniment evidence verify 01971f2e-6c00-7000-8000-000000000001"},
    {"list-evidence", "muniment list-evidence --run @last"},
    {"check-evidence", "muniment check-evidence 01971f2e-6c00-7000-8000-000000000001"},
    {"pointer", "muniment pointer validate artifact://nightly-17/01971f2e-6c00-7000-8000-000000000001"},
    {"pointer resolve", "muniment pointer resolve run://nightly-17 log://metrics"},
    {"pointer validate", "muniment pointer validate run://nightly-17"},
    {"task", "muniment task list --run @last --status open"},
    {"task open", "muniment task open 'Run the tests' --task tests --run nightly-17"},
    {"task list", "muniment task list --run @last --status open"},
    {"task complete", "muniment task complete tests --evidence 01971f2e-6c00-7000-8000-000000000001 --run nightly-17"},
    {"task validate", "muniment task validate tests --evidence 01971f2e-6c00-7000-8000-000000000001 --run nightly-17"},
    {"validate-todo", "muniment validate-todo 'Run the tests' --evidence 01971f2e-6c00-7000-8000-000000000001"},
    {"ingest", "muniment ingest docs/ --corpus handbook"},
    {"query", "muniment query 'how is a run recovered' --corpus handbook --full"},
    {"corpus", "muniment corpus list"},
    {"corpus list", "muniment corpus list"},
    {"document", "muniment document list handbook"},
    {"document list", "muniment document list handbook"},
    {"document get", "muniment document get handbook docs/runbook.md"},
    {"document history", "muniment document history handbook docs/runbook.md"},
    {"document diff", "muniment document diff handbook docs/runbook.md"},
    {"document retract", "muniment document retract handbook docs/old.md --reason 'Out of date'"},
    {"source", "muniment source revoke https://hoax.example/ --reason 'A hoax'"},
    {"source revoke", "muniment source revoke https://hoax.example/ --reason 'A hoax'"},
    {"feedback", "muniment feedback 'ev://handbook/docs/runbook.md#p3?v=3f9a' 1"},
    {"ask", "muniment ask 'how is a run recovered' --corpus handbook"},
    {"context", "muniment context 'how is a run recovered' --budget 2000"},
    {"audit", "muniment audit verify"},
    {"audit checkpoint", "muniment audit checkpoint -o checkpoint.txt"},
    {"audit prove", "muniment audit prove nightly-17 -o nightly-17.tlog-proof"},
    {"audit key", "muniment audit key show"},
    {"audit key init", "muniment audit key init -o log.pub"},
    {"audit key show", "muniment audit key show"},
    {"audit key rotate", "muniment audit key rotate --reason 'Yearly rotation'"},
    {"audit redact", "muniment audit redact --run nightly-17 --reason 'Request 4711' --dry-run"},
    {"audit archive", "muniment audit archive"},
    {"audit witness", "muniment audit witness --state /var/lib/witness --log-key log.pub"},
    {"audit verify", "muniment audit verify"},
    {"audit export", "muniment audit export @last -o last.muniment.tar.zst"},
    {"audit import", "muniment audit import last.muniment.tar.zst --key log.pub"},
    {"audit report", "muniment audit report @last -o report.html"},
    {"import", "muniment import --mine"},
    {"backup", "muniment backup /mnt/backups --keep 7"},
    {"restore", "muniment restore /mnt/backups --data /srv/muniment"},
    {"export", "muniment export --since 1d --format jsonl --output events.jsonl"},
    {"sql", "muniment sql -c 'SELECT run_id, status FROM report.run_report LIMIT 10'"},
    {"help", "muniment help run show"},
};

void add_below(CLI::App& command, const std::string& path) {
  for (CLI::App* const word : command.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string below = path + (path.empty() ? "" : " ") + word->get_name();
    const std::string own = word->get_footer();
    if (const std::string_view example = example_of(below); !example.empty())
      word->footer(std::string(example_head) + std::string(example) + (own.empty() ? "" : "\n\n" + own));
    add_below(*word, below);
  }
}

}  // namespace

std::string_view example_of(std::string_view path) {
  const auto* const found = std::ranges::find_if(examples, [path](const auto& row) { return row.first == path; });
  return found == std::end(examples) ? std::string_view() : found->second;
}

void add_examples(CLI::App& app) { add_below(app, {}); }

}  // namespace muniment::cli
