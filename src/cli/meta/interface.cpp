// The criteria of documentation and of the agent interface: every method, command and option has a text, and the socket
// serves JSON-RPC and MCP.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/files/file.hpp"
#include "base/json/schema.hpp"
#include "cli/meta/criteria.hpp"
#include "client/examples.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view method_label = "{method=\"";
constexpr std::array<std::string_view, 5> documents = {"evidence.md", "protocol.md", "events.md", "operations.md",
                                                       "runbook.md"};
constexpr std::int64_t document_bytes_max = 8 << 20;
constexpr std::array<std::string_view, 5> evidence_tools = {"retrieve_evidence", "record_evidence", "open_task",
                                                            "validate_todo", "complete_task"};

Error undocumented(std::string what) { return {Errc::conflict, std::move(what)}; }

// Returns the methods that the daemon serves, from its metrics, which have a row for each.
Result<std::set<std::string>> served_methods(Session& session) {
  ASSIGN_OR_RETURN(const Message answer, session.call("server.metrics", "{}"));
  const std::string text = answer.result()["text"].string_or("");
  std::set<std::string> methods;
  std::size_t at = 0;
  while ((at = text.find(method_label, at)) != std::string::npos) {
    at += method_label.size();
    methods.insert(text.substr(at, text.find('"', at) - at));
  }
  if (methods.empty()) return undocumented("the daemon's metrics name no method");
  return methods;
}

Status check_properties(const std::string& method, const json::Value& part) {
  for (const json::Value property : part["properties"]) {
    if (property["description"].present() || property["$ref"].present()) continue;
    return undocumented(fmt::format("the member {} of method {} has no description", property.key(), method));
  }
  return success();
}

Status check_schema(const std::string& method) {
  const auto texts = embedded_schema_texts();
  const auto found = std::ranges::find(texts, "rpc/" + method, &SchemaText::path);
  if (found == texts.end()) return undocumented(fmt::format("method {} has no schema", method));
  ASSIGN_OR_RETURN(const json::Document document, json::parse(found->text));
  if (document.root()["title"].string_or("").empty())
    return undocumented(fmt::format("the schema of method {} has no title", method));
  RETURN_IF_ERROR(check_properties(method, document.root()["params"]));
  return check_properties(method, document.root()["result"]);
}

struct CommandCount {
  std::size_t commands = 0, options = 0;
};

// Checks the commands below `command`, an object of command_tree.
Status check_commands(const json::Value& command, const std::string& path, CommandCount& count) {
  for (const json::Value option : command["options"]) {
    ++count.options;
    if (option["text"].string_or("").empty())
      return undocumented(fmt::format("the option {}{} of muniment {} has no help text",
                                      option["positional"].string_or(""), option["names"].source(), path));
  }
  for (const json::Value below : command["commands"]) {
    ++count.commands;
    const std::string name = path + (path.empty() ? "" : " ") + below["name"].string_or("");
    if (below["text"].string_or("").empty())
      return undocumented(fmt::format("the command muniment {} has no help text", name));
    if (example_of(name).empty()) return undocumented(fmt::format("the command muniment {} has no example", name));
    RETURN_IF_ERROR(check_commands(below, name, count));
  }
  return success();
}

// Returns the folder of the documents of this program: that of the source tree, or the installed one; empty if there is
// none.
std::string document_folder() {
  std::error_code failed;
  const fs::path place = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const char* const folder : {"../docs", "../share/doc/muniment/docs"}) {
    const fs::path path = (place / folder).lexically_normal();
    if (!failed && fs::is_regular_file(path / documents.front(), failed)) return path.string();
  }
  return {};
}

Status check_documents(const std::string& folder, const std::set<std::string>& methods) {
  std::string protocol;
  for (const std::string_view name : documents) {
    auto text = read_file(folder + "/" + std::string(name), document_bytes_max);
    if (!text) return std::move(text).error();
    if (text->empty()) return undocumented(fmt::format("{}/{} is empty", folder, name));
    if (name == "protocol.md" || name == "evidence.md") protocol += *text;
  }
  for (const std::string& method : methods) {
    if (protocol.find(method) == std::string::npos)
      return undocumented(fmt::format("{}/protocol.md does not name method {}", folder, method));
  }
  return success();
}

// Opens an MCP session on the daemon's socket, with the toolsets of evidence.
Result<Client> open_mcp(MetaRun& run) {
  ASSIGN_OR_RETURN(const Config config, run.session.config());
  ASSIGN_OR_RETURN(Client client, Client::connect(config.socket));
  RETURN_IF_ERROR(client.notify("muniment/session", R"({"record":false,"toolsets":["ledger","tasks"]})"));
  ASSIGN_OR_RETURN(const Message opened,
                   client.call("initialize", R"({"protocolVersion":"2025-11-25","capabilities":{},)"
                                             R"("clientInfo":{"name":"muniment doctor","version":"1"}})"));
  if (opened.result()["protocolVersion"].string_or("") != "2025-11-25")
    return undocumented("MCP: initialize did not agree on the revision 2025-11-25");
  RETURN_IF_ERROR(client.notify("notifications/initialized", "{}"));
  return client;
}

// Returns the number of tools.
Result<std::size_t> check_tools(Client& client) {
  ASSIGN_OR_RETURN(const Message listed, client.call("tools/list", "{}"));
  const json::Value tools = listed.result()["tools"];
  std::set<std::string> names;
  for (const json::Value tool : tools) {
    const std::string name = tool["name"].string_or("");
    if (tool["description"].string_or("").empty() || !tool["inputSchema"].is(json::Kind::object))
      return undocumented(fmt::format("MCP: the tool {} has no description or no schema", name));
    names.insert(name);
  }
  for (const std::string_view name : evidence_tools) {
    if (!names.contains(std::string(name))) return undocumented(fmt::format("MCP: tools/list has no tool {}", name));
  }
  return tools.size();
}

}  // namespace

Result<std::string> documentation(MetaRun& run) {
  ASSIGN_OR_RETURN(const std::set<std::string> methods, served_methods(run.session));
  for (const std::string& method : methods) RETURN_IF_ERROR(check_schema(method));
  ASSIGN_OR_RETURN(const json::Document tree, json::parse(std::string_view(run.commands)));
  CommandCount count;
  RETURN_IF_ERROR(check_commands(tree.root(), "", count));
  const std::string folder = document_folder();
  if (!folder.empty()) RETURN_IF_ERROR(check_documents(folder, methods));
  return fmt::format("{} methods, {} commands and {} options have texts; documents: {}", methods.size(), count.commands,
                     count.options, folder.empty() ? "not installed, not checked" : folder);
}

Result<std::string> agent_interface(MetaRun& run) {
  ASSIGN_OR_RETURN(const Message health, run.session.call("server.health", "{}"));
  if (health.result()["database"].string_or("") != "up") return undocumented("server.health: the database is not up");
  ASSIGN_OR_RETURN(Client client, open_mcp(run));
  ASSIGN_OR_RETURN(const std::size_t tools, check_tools(client));
  ASSIGN_OR_RETURN(const Message called,
                   client.call("tools/call", R"({"name":"validate_todo","arguments":)"
                                             R"({"content":"Publish the release notes","evidence_ids":[]}})"));
  const json::Value can_complete = called.result()["structuredContent"]["can_complete"];
  if (!can_complete.present() || can_complete.as_bool().value_or(true))
    return undocumented("MCP: the tool validate_todo did not refuse a task without evidence");
  return fmt::format("JSON-RPC and MCP answer on the socket; {} tools, and validate_todo was called", tools);
}

}  // namespace muniment::cli
