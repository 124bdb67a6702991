// Implements the commands capsule info, verify, diff, merge, compact, key, sign, encrypt, decrypt, export and import.
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "capsule/capsule.hpp"
#include "capsule/encryption.hpp"
#include "capsule/merge.hpp"
#include "capsule/rpc.hpp"
#include "capsule/signing.hpp"
#include "cli/commands.hpp"
#include "cli/commands/capsule/transfer.hpp"
#include "cli/time_option.hpp"

namespace muniment::cli {
namespace {

struct FileOptions {
  std::string file;
};

void declare_file(CLI::App& command, FileOptions& options) {
  command.add_option("FILE", options.file, "The capsule")->required();
}

// Reports what an interrupted writer left.
void note_torn_end(const capsule::CapsuleFile& file) {
  if (file.torn_bytes() > 0)
    fmt::print(stderr,
               "muniment: {} bytes after the newest complete commit are ignored; the next writer cuts them off\n",
               grouped(file.torn_bytes()));
  if (file.lost_bytes() > 0)
    fmt::print(stderr, "muniment: the file ends {} bytes before its newest commit; the last complete one is used\n",
               grouped(file.lost_bytes()));
}

Status show_info(Session& session, const FileOptions& options) {
  ASSIGN_OR_RETURN(const auto opened, capsule::Capsule::open(options.file));
  capsule::CapsuleFile& file = opened->file();
  const capsule::Index& index = opened->index();
  note_torn_end(file);
  std::map<std::string_view, std::uint64_t> types;
  for (std::int64_t number = 0; number < index.frames(); ++number)
    ++types[capsule::name_of(static_cast<capsule::FrameType>(index.row(number).type))];
  std::uint64_t index_bytes = 0;
  for (const capsule::Segment& segment : file.state().segments) index_bytes += segment.bytes;
  json::Writer out;
  out.begin_object().member("id", to_hex(file.header().id)).member("created", format_time({file.header().created_us}));
  out.member("bytes", static_cast<std::int64_t>(file.end()))
      .member("index_bytes", static_cast<std::int64_t>(index_bytes));
  out.member("commit", static_cast<std::int64_t>(file.state().number)).member("chain", to_hex(file.state().chain));
  out.member("frames", index.frames()).member("indexed", index.indexed()).key("types").begin_object();
  for (const auto& [name, count] : types) out.member(name, static_cast<std::int64_t>(count));
  out.end_object().member("torn_bytes", static_cast<std::int64_t>(file.torn_bytes()));
  out.member("lost_bytes", static_cast<std::int64_t>(file.lost_bytes())).key("collections").begin_object();
  for (const auto& [name, facts] : index.catalogue())
    out.key(name).begin_object().member("documents", facts.documents).member("passages", facts.chunks).end_object();
  out.end_object().end_object();
  if (session.options.json) {
    session.out().json_line(out.text());
    return success();
  }
  const Output& print = session.out();
  print.line(fmt::format("capsule {}  {}, {} of it indexes", to_hex(file.header().id).substr(0, 16),
                         human_size(file.end()), human_size(index_bytes)));
  std::string counts;
  for (const auto& [name, count] : types) counts += fmt::format("  {} {}", grouped(count), name);
  print.line(fmt::format("frames {}{}", grouped(static_cast<std::uint64_t>(index.frames())),
                         counts.empty() ? "" : " (" + counts.substr(2) + ")"));
  Table table({"collection", "documents", "passages"});
  for (const auto& [name, facts] : index.catalogue())
    table.add({print.one_line(name), grouped(static_cast<std::uint64_t>(facts.documents)),
               grouped(static_cast<std::uint64_t>(facts.chunks))});
  table.print(print);
  return success();
}

Status verify(Session& session, const FileOptions& options) {
  ASSIGN_OR_RETURN(const auto file, capsule::CapsuleFile::open(options.file, capsule::Access::read));
  note_torn_end(*file);
  RETURN_IF_ERROR(file->verify());
  session.out().line(
      fmt::format("intact: {} frames, chain {}", grouped(file->state().frames), to_hex(file->state().chain)));
  return success();
}

struct DiffOptions {
  std::string left, right;
};

void declare_diff(CLI::App& command, DiffOptions& options) {
  command.add_option("LEFT", options.left, "The first capsule")->required();
  command.add_option("RIGHT", options.right, "The second capsule")->required();
}

Status diff(Session& session, const DiffOptions& options) {
  ASSIGN_OR_RETURN(const capsule::Difference found, capsule::diff(options.left, options.right));
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("only_left", found.only_left).member("only_right", found.only_right);
    session.out().json_line(out.member("changed", found.changed).end_object().text());
    return success();
  }
  const Output& out = session.out();
  for (const std::string& uri : found.only_left) out.line("only left   " + out.one_line(uri));
  for (const std::string& uri : found.only_right) out.line("only right  " + out.one_line(uri));
  for (const std::string& uri : found.changed) out.line("changed     " + out.one_line(uri));
  return success();
}

struct MergeOptions {
  std::vector<std::string> files;
  std::string output;
  bool latest = false;
};

void declare_merge(CLI::App& command, MergeOptions& options) {
  command.add_option("FILE", options.files, "Capsules to merge")->required();
  command.add_option("-o,--output", options.output, "The new capsule")->required();
  command.add_flag("--latest", options.latest, "Take only the newest revision of each document");
}

Status merge(Session& session, const MergeOptions& options) {
  ASSIGN_OR_RETURN(const capsule::Merged merged, capsule::merge(options.files, options.output, options.latest));
  const Output& out = session.out();
  if (session.options.json) {
    json::Writer json;
    json.begin_object().member("frames", static_cast<std::int64_t>(merged.frames));
    json.member("documents", static_cast<std::int64_t>(merged.documents));
    json.member("duplicates", static_cast<std::int64_t>(merged.duplicates)).member("conflicts", merged.conflicts);
    out.json_line(json.end_object().text());
    return success();
  }
  out.line(fmt::format("merged {} frames ({} revisions), {} duplicates", grouped(merged.frames),
                       grouped(merged.documents), grouped(merged.duplicates)));
  for (const std::string& uri : merged.conflicts)
    out.line("conflict    " + out.one_line(uri) + "  both changed it; the later revision is current");
  return success();
}

Status compact(Session& session, const FileOptions& options) {
  std::uint64_t before = 0;
  {
    ASSIGN_OR_RETURN(const auto file, capsule::CapsuleFile::open(options.file, capsule::Access::write));
    note_torn_end(*file);
    before = file->end();
    RETURN_IF_ERROR(capsule::catch_up(*file, capsule::Anew::indexes));
  }
  ASSIGN_OR_RETURN(const auto made, capsule::CapsuleFile::open(options.file, capsule::Access::read));
  session.out().line(fmt::format("{} → {}", human_size(before), human_size(made->end())));
  return success();
}

struct TrustOptions {
  std::string file;
  bool revoke = false;
};

void declare_trust(CLI::App& command, TrustOptions& options) {
  command.add_option("FILE", options.file, "The capsule")->required();
  command.add_flag("--revoke", options.revoke, "Trust its config no longer");
}

void print_command(const Output& out, std::string_view name, const std::vector<std::string>& command) {
  if (!command.empty()) out.line(fmt::format("  {:<9}  {}", name, out.one_line(joined(command, " "))));
}

// Prints what the config may do on this machine, and records that the user trusts it.
Status trust_config(Session& session, const TrustOptions& options) {
  ASSIGN_OR_RETURN(const auto opened, capsule::Capsule::open(options.file));
  ASSIGN_OR_RETURN(const auto stored, opened->config());
  if (!stored) return Error(Errc::not_found, "the capsule has no config, and no hooks");
  const Output& out = session.out();
  if (options.revoke) {
    ASSIGN_OR_RETURN(const bool was, capsule::distrust(stored->hash));
    out.line(fmt::format("{}  {}", was ? "no longer trusted" : "was not trusted", stored->hash.substr(0, 16)));
    return success();
  }
  ASSIGN_OR_RETURN(const capsule::CapsuleConfig config, capsule::parse_config(stored->body));
  RETURN_IF_ERROR(capsule::trust(stored->hash, options.file));
  out.line(fmt::format("trusted  {}  {}", stored->hash.substr(0, 16), capsule::config_uri));
  print_command(out, "expansion", config.expansion);
  print_command(out, "rerank", config.rerank);
  print_command(out, "agent", config.agent);
  if (const std::string context = config.text_of_context(); !context.empty())  // a system message of the agent
    out.line(fmt::format("  {:<9}  {}", "context", out.one_line(context)));
  for (const auto& [name, collection] : config.collections) {
    if (!collection.root.empty())
      out.line(fmt::format("  {:<9}  {} from {}", "ingest", out.one_line(name), out.one_line(collection.root)));
  }
  return success();
}

struct ConfigOptions {
  std::string file = "-";
};

void declare_config_set(CLI::App& command, ConfigOptions& options) {
  command.add_option("FILE", options.file, "JSON file; - is standard input")->capture_default_str();
}

Status need_capsule(const Session& session, std::string_view words) {
  if (!session.options.capsule.empty()) return success();
  return Error(Errc::invalid_argument, fmt::format("--capsule is missing. Write: muniment --capsule FILE {}", words));
}

Status get_config(Session& session, const NoOptions&) {
  RETURN_IF_ERROR(need_capsule(session, "config get"));
  ASSIGN_OR_RETURN(const Message answer, session.call("config.get", "{}"));
  if (session.printed_json(answer)) return success();
  session.out().line(session.out().safe(answer.result()["config"].source()));
  if (!answer.result()["trusted"].as_bool().value_or(false))
    fmt::print(stderr, "muniment: not trusted, so that it has no effect. Trust it: muniment capsule trust FILE\n");
  return success();
}

Status set_config(Session& session, const ConfigOptions& options) {
  RETURN_IF_ERROR(need_capsule(session, "config set"));
  ASSIGN_OR_RETURN(const std::string text,
                   options.file == "-" ? read_input(STDIN_FILENO, "standard input", limits::capsule_config_bytes_max)
                                       : read_input(options.file, limits::capsule_config_bytes_max));
  ASSIGN_OR_RETURN(const auto opened, capsule::Capsule::open_or_create(session.options.capsule));
  ASSIGN_OR_RETURN(const capsule::StoredConfig stored, opened->set_config(text));
  session.out().line(fmt::format("stored and trusted  {}  seq {}", stored.hash.substr(0, 16), stored.seq));
  return success();
}

struct McpOptions {
  std::vector<std::string> files;
};

void declare_mcp(CLI::App& command, McpOptions& options) {
  command.add_option("--files", options.files, "Folder whose files remember may read (may be repeated; default: none)")
      ->type_name("FOLDER");
  command.footer("A host starts it as an MCP server: claude mcp add notes -- muniment --capsule FILE mcp");
}

// Standard output carries only protocol messages, also with --json.
Status serve_mcp(Session& session, const McpOptions& options) {
  session.options.json = false;
  RETURN_IF_ERROR(need_capsule(session, "mcp"));
  if (!session.command.empty()) return Error(Errc::invalid_argument, "a capsule records no MCP server. Omit --capsule");
  std::vector<std::string> folders;
  for (const std::string& name : options.files) {
    std::error_code failed;
    folders.push_back(std::filesystem::absolute(name, failed).lexically_normal().string());
    if (auto opened = open_folder(folders.back()); !opened) return std::move(opened).error().within("--files");
  }
  capsule::Server server(session.options.capsule, std::move(folders));
  session.exit_code = capsule::serve_mcp(STDIN_FILENO, STDOUT_FILENO, server);
  return success();
}

struct KeyOptions {
  std::string name, output;
};

void declare_key(CLI::App& command, KeyOptions& options) {
  command.add_option("NAME", options.name, "Name of the key, such as alice.example, without spaces and +")->required();
  command.add_option("-o,--output", options.output, "The new file with the private key")->required();
}

Status make_key(Session& session, const KeyOptions& options) {
  const NoteSigner signer(options.name, KeyType::ed25519, SigningKey::generate());
  ASSIGN_OR_RETURN(const VerifierKey key, VerifierKey::parse(signer.verifier().text()));
  const Fd file(::open(options.output.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open()) return file_error("creating", options.output, errno);
  RETURN_IF_ERROR(write_all(file.get(), signer.text() + "\n", options.output));
  session.out().line(key.text());
  return success();
}

struct SignOptions {
  std::string file, key;
};

void declare_sign(CLI::App& command, SignOptions& options) {
  command.add_option("FILE", options.file, "The capsule")->required();
  command.add_option("--key", options.key, "File with the private key")->required()->type_name("FILE");
  command.footer("Check a signature: muniment-verify --capsule FILE --key PUBLIC");
}

Status sign(Session& session, const SignOptions& options) {
  ASSIGN_OR_RETURN(const NoteSigner signer, NoteSigner::read(options.key));
  ASSIGN_OR_RETURN(const Checkpoint covered, capsule::sign(options.file, signer));
  session.out().line(fmt::format("signed: {} frames, chain {}, by {}",
                                 grouped(static_cast<std::uint64_t>(covered.size)), to_hex(covered.root),
                                 signer.verifier().text()));
  return success();
}

// Reads a line from the terminal without showing it.
Result<std::string> ask_passphrase(bool twice) {
  const Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal.open())
    return Error(Errc::invalid_argument, "there is no terminal to ask for the passphrase. Give --passphrase-file FILE");
  struct termios shown {};
  if (::tcgetattr(terminal.get(), &shown) != 0) return file_error("reading", "/dev/tty", errno);
  struct termios hidden = shown;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  std::vector<std::string> said;
  for (const std::string_view prompt : {"Passphrase: ", "Again: "}) {
    ::tcsetattr(terminal.get(), TCSAFLUSH, &hidden);  // before the prompt, since it discards what was typed
    RETURN_IF_ERROR(write_all(terminal.get(), prompt, "/dev/tty"));
    std::string line;
    for (char letter = 0; ::read(terminal.get(), &letter, 1) == 1 && letter != '\n';) line += letter;
    ::tcsetattr(terminal.get(), TCSAFLUSH, &shown);
    RETURN_IF_ERROR(write_all(terminal.get(), "\n", "/dev/tty"));
    said.push_back(std::move(line));
    if (!twice) break;
  }
  if (said.front() != said.back()) return Error(Errc::invalid_argument, "the passphrases differ. Nothing was written");
  return said.front();
}

struct EncryptOptions {
  std::string file, output, passphrase_file;
};

void declare_encrypt(CLI::App& command, EncryptOptions& options) {
  command.add_option("FILE", options.file, "The file")->required();
  command.add_option("-o,--output", options.output, "The new file")->required();
  command
      .add_option("--passphrase-file", options.passphrase_file,
                  "File whose first line is the passphrase; - for standard input")
      ->type_name("FILE");
  command.footer("Without --passphrase-file, the passphrase is read from the terminal.");
}

Result<std::string> passphrase_of(const EncryptOptions& options, bool twice) {
  if (options.passphrase_file.empty()) return ask_passphrase(twice);
  ASSIGN_OR_RETURN(std::string text, options.passphrase_file == "-"
                                         ? read_input(STDIN_FILENO, "standard input", limits::passphrase_bytes_max)
                                         : read_input(options.passphrase_file, limits::passphrase_bytes_max));
  return text.substr(0, text.find('\n'));
}

Status encrypt(Session&, const EncryptOptions& options) {
  ASSIGN_OR_RETURN(const std::string passphrase, passphrase_of(options, true));
  return capsule::encrypt(options.file, options.output, passphrase);
}

Status decrypt(Session&, const EncryptOptions& options) {
  ASSIGN_OR_RETURN(const std::string passphrase, passphrase_of(options, false));
  return capsule::decrypt(options.file, options.output, passphrase);
}

struct ExportOptions {
  CapsuleOrder order;
  std::string key;
};

void declare_export(CLI::App& command, ExportOptions& options) {
  command.add_option("FILE", options.order.path, "The new capsule")->required();
  command.add_option("--corpus", options.order.corpora, "Corpus whose documents are written; repeat for several");
  command.add_option("--run", options.order.runs, "Run whose messages are written; repeat for several");
  add_asof_option(command, options.order.asof, "Write what was recorded up to then");
  command.add_option("--sign", options.key, "File with the private key that signs the capsule")->type_name("KEY");
  command.footer("Needs the daemon's own user or root, since the events of all corpora are in one run.");
}

Status export_to(Session& session, const ExportOptions& options) {
  std::optional<NoteSigner> signer;
  if (!options.key.empty()) {
    ASSIGN_OR_RETURN(signer, NoteSigner::read(options.key));
  }
  CapsuleOrder order = options.order;
  for (std::string& run : order.runs) {
    ASSIGN_OR_RETURN(run, session.run_id(run));
  }
  if (order.runs.empty() && order.corpora.empty())
    return Error(Errc::invalid_argument, "expected --corpus NAME or --run RUN");
  ASSIGN_OR_RETURN(Client* const client, session.client());
  ASSIGN_OR_RETURN(const ExportedCapsule exported, export_capsule(*client, order));
  if (signer) {
    ASSIGN_OR_RETURN([[maybe_unused]] const Checkpoint covered, capsule::sign(order.path, *signer));
  }
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("file", order.path).member("documents", exported.documents);
    out.member("messages", exported.messages)
        .member("left_out", exported.left_out)
        .member("signed", signer.has_value());
    session.out().json_line(out.end_object().text());
    return success();
  }
  session.out().line(fmt::format("{}: {} revisions, {} messages{}", session.out().one_line(order.path),
                                 exported.documents, exported.messages, signer ? ", signed" : ""));
  for (const std::string& one : exported.left_out) session.out().line("left out    " + session.out().one_line(one));
  return success();
}

void declare_import(CLI::App& command, CapsuleSource& options) {
  command.add_option("FILE", options.path, "The capsule")->required();
  command.add_option("--corpus", options.corpus,
                     "Corpus that receives the documents (default: that of each collection)");
  options.trust = "untrusted";
  command.add_option("--trust", options.trust, "Trust in the text of the documents")
      ->check(CLI::IsMember({"trusted", "untrusted", "quarantined"}))
      ->capture_default_str();
}

Status import_from(Session& session, const CapsuleSource& source) {
  ASSIGN_OR_RETURN(Client* const client, session.client());
  ASSIGN_OR_RETURN(const ImportedCapsule imported, import_capsule(*client, source));
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("run_id", imported.run_id).member("documents", imported.documents);
    out.member("messages", imported.messages).member("known", imported.known);
    out.member("only_in_capsule", imported.only_in_capsule).member("already", imported.already).end_object();
    session.out().json_line(out.text());
    return success();
  }
  if (imported.already) {
    session.out().line(fmt::format("run {}: imported already", imported.run_id));
    return success();
  }
  session.out().line(fmt::format("run {}: {} revisions, {} messages, {} known before, {} frames only in the capsule",
                                 imported.run_id, imported.documents, imported.messages, imported.known,
                                 imported.only_in_capsule));
  return success();
}

}  // namespace

void add_capsule_config_commands(CLI::App& app, Session& session) {
  CLI::App& group = add_group(app, "config", "Read or replace the config inside a capsule");
  add_command<NoOptions>(session, group, "get", "Print the config", nullptr, get_config);
  add_command<ConfigOptions>(session, group, "set", "Replace the config, and trust it", declare_config_set, set_config);
}

void add_capsule_mcp_command(CLI::App& app, Session& session) {
  add_command<McpOptions>(session, app, "mcp", "Serve MCP on standard input and output", declare_mcp, serve_mcp);
}

void add_capsule_commands(CLI::App& app, Session& session) {
  CLI::App& group = add_group(app, "capsule", "Inspect, verify, compare and merge capsules");
  add_command<FileOptions>(session, group, "info", "Show what a capsule holds", declare_file, show_info);
  add_command<FileOptions>(session, group, "verify", "Check every frame, index and hash of a capsule", declare_file,
                           verify);
  add_command<DiffOptions>(session, group, "diff", "Compare the current documents of two capsules", declare_diff, diff);
  add_command<MergeOptions>(session, group, "merge", "Merge capsules into a new one", declare_merge, merge);
  add_command<KeyOptions>(session, group, "key", "Make a key that signs capsules", declare_key, make_key);
  add_command<SignOptions>(session, group, "sign", "Sign the frames of a capsule", declare_sign, sign);
  add_command<ExportOptions>(session, group, "export", "Write documents and messages of a log to a new capsule",
                             declare_export, export_to);
  add_command<CapsuleSource>(session, group, "import", "Take the documents and messages of a capsule into a log",
                             declare_import, import_from);
  add_command<TrustOptions>(session, group, "trust", "Let the config of a capsule run its hooks", declare_trust,
                            trust_config);
  add_command<EncryptOptions>(session, group, "encrypt", "Encrypt a capsule with a passphrase", declare_encrypt,
                              encrypt);
  add_command<EncryptOptions>(session, group, "decrypt", "Decrypt an encrypted capsule", declare_encrypt, decrypt);
  add_command<FileOptions>(session, group, "compact", "Write a capsule anew, with new indexes", declare_file, compact);
}

}  // namespace muniment::cli
