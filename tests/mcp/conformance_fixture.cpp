// A daemon with the tools, resources and prompts that MCP's conformance suite calls. Its HTTP listener needs no token.
#include "daemon/program.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "mcp/session.hpp"

namespace muniment::mcp {
namespace {

constexpr std::string_view png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
constexpr std::string_view wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
constexpr std::string_view no_arguments = R"({"type":"object","properties":{}})";

std::string text_part(std::string_view text) {
  return json::Writer().begin_object().member("type", "text").member("text", text).end_object().text();
}
std::string data_part(std::string_view type, std::string_view data, std::string_view mime_type) {
  return json::Writer()
      .begin_object()
      .member("type", type)
      .member("data", data)
      .member("mimeType", mime_type)
      .end_object()
      .text();
}
std::string resource_part(std::string_view uri, std::string_view mime_type, std::string_view text) {
  json::Writer part;
  part.begin_object().member("type", "resource").key("resource").begin_object().member("uri", uri);
  part.member("mimeType", mime_type).member("text", text).end_object();
  return std::move(part.end_object()).text();
}

void answer_parts(const CallPtr& call, std::initializer_list<std::string> parts, bool error = false) {
  json::Writer result;
  result.begin_object().key("content").begin_array();
  for (const std::string& part : parts) result.raw(part);
  call->answer(result.end_array().member("isError", error).end_object().text());
}
void answer_text(const CallPtr& call, std::string_view text, bool error = false) {
  answer_parts(call, {text_part(text)}, error);
}

void simple_text(const CallPtr& call) { answer_text(call, "This is a simple text response for testing."); }
void image(const CallPtr& call) { answer_parts(call, {data_part("image", png, "image/png")}); }
void audio(const CallPtr& call) { answer_parts(call, {data_part("audio", wav, "audio/wav")}); }
void embedded(const CallPtr& call) {
  answer_parts(call,
               {resource_part("test://embedded-resource", "text/plain", "This is an embedded resource content.")});
}
void mixed(const CallPtr& call) {
  answer_parts(call,
               {text_part("Multiple content types test:"), data_part("image", png, "image/png"),
                resource_part("test://mixed-content-resource", "application/json", R"({"test":"data","value":123})")});
}
void failing(const CallPtr& call) { answer_text(call, "This tool intentionally returns an error for testing", true); }
void logging(const CallPtr& call) {
  for (const char* text : {"Tool execution started", "Tool processing data", "Tool execution completed"})
    call->log("info", json::quote(text));
  answer_text(call, "Tool with logging executed successfully");
}
void progress(const CallPtr& call) {
  for (const double done : {0.0, 50.0, 100.0}) call->progress(done, 100, "");
  answer_text(call, "Tool with progress executed successfully");
}
void ok(const CallPtr& call) { answer_text(call, "ok"); }

bool has(const CallPtr& call, std::string_view capability) { return call->client_capabilities()[capability].present(); }

void sampling(const CallPtr& call) {
  if (!has(call, "sampling")) return answer_text(call, "The client has no capability sampling.", true);
  json::Writer params;
  params.begin_object().key("messages").begin_array().begin_object().member("role", "user");
  params.raw_member("content", text_part(call->params()["arguments"]["prompt"].string_or("")));
  params.end_object().end_array().member("maxTokens", 100).end_object();
  call->session().ask(*call, "sampling/createMessage", params.text(), [call](const Message& answer) {
    answer_text(call, "LLM response: " + answer.root()["result"]["content"]["text"].string_or(""));
  });
}

void elicit(const CallPtr& call, std::string_view message, std::string_view schema, std::string_view said) {
  if (!has(call, "elicitation")) return answer_text(call, "The client has no capability elicitation.", true);
  const std::string params = json::Writer()
                                 .begin_object()
                                 .member("message", message)
                                 .raw_member("requestedSchema", schema)
                                 .end_object()
                                 .text();
  call->session().ask(*call, "elicitation/create", params, [call, said = std::string(said)](const Message& answer) {
    const json::Value result = answer.root()["result"];
    const json::Value content = result["content"];
    answer_text(call, fmt::format("{}: action={}, content={}", said, result["action"].string_or(""),
                                  content ? content.source() : std::string_view("{}")));
  });
}

void elicitation(const CallPtr& call) {
  elicit(call, call->params()["arguments"]["message"].string_or(""),
         R"({"type":"object","properties":{"username":{"type":"string","description":"User's response"},)"
         R"("email":{"type":"string","description":"User's email address"}},"required":["username","email"]})",
         "User response");
}

void elicitation_defaults(const CallPtr& call) {
  elicit(call, "Please review and update the form fields with defaults",
         R"({"type":"object","properties":{"name":{"type":"string","description":"User name","default":"John Doe"},)"
         R"("age":{"type":"integer","description":"User age","default":30},)"
         R"("score":{"type":"number","description":"User score","default":95.5},)"
         R"("status":{"type":"string","description":"User status","enum":["active","inactive","pending"],)"
         R"("default":"active"},"verified":{"type":"boolean","description":"Verification status","default":true}},)"
         R"("required":[]})",
         "Elicitation completed");
}

void elicitation_enums(const CallPtr& call) {
  elicit(call, "Please choose",
         R"({"type":"object","properties":{)"
         R"("untitledSingle":{"type":"string","enum":["option1","option2","option3"]},)"
         R"("titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},)"
         R"({"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},)"
         R"("legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],)"
         R"("enumNames":["Option One","Option Two","Option Three"]},)"
         R"("untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},)"
         R"("titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},)"
         R"({"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}},"required":[]})",
         "Elicitation completed");
}

std::string ask_for(std::string_view message, std::string_view property, std::string_view type) {
  json::Writer request;
  request.begin_object().member("method", "elicitation/create").key("params").begin_object().member("message", message);
  request.key("requestedSchema").begin_object().member("type", "object").key("properties").begin_object();
  request.key(property).begin_object().member("type", type).end_object().end_object();
  request.key("required").begin_array().string(property).end_array().end_object().end_object();
  return std::move(request.end_object()).text();
}
std::string ask_model(std::string_view text, int tokens) {
  json::Writer request;
  request.begin_object().member("method", "sampling/createMessage").key("params").begin_object();
  request.key("messages").begin_array().begin_object().member("role", "user").raw_member("content", text_part(text));
  request.end_object().end_array().member("maxTokens", tokens).end_object();
  return std::move(request.end_object()).text();
}
constexpr std::string_view ask_roots = R"({"method":"roots/list","params":{}})";

json::Value response(const CallPtr& call, std::string_view name) {
  const json::Value found = call->params()["inputResponses"][name];
  return found.is(json::Kind::object) ? found : json::Value();
}

struct Question {
  std::string name;
  std::string request;
};
std::string questions(const std::vector<Question>& asked) {
  json::Writer requests;
  requests.begin_object();
  for (const Question& one : asked) requests.raw_member(one.name, one.request);
  return std::move(requests.end_object()).text();
}

// State of this call's first round. A state that the client forged is answered with an error.
enum class State : std::uint8_t { none, good, forged };
State take_state(const CallPtr& call, std::string& text) {
  const json::Value given = call->params()["requestState"];
  if (!given) return State::none;
  Session& session = call->session();
  const auto state =
      session.server().unseal(call->params()["name"].string_or(""), session.options().owner, given.string_or(""));
  if (!state) {
    call->fail({invalid_params, "requestState: this is not what the server sent, or it has expired."});
    return State::forged;
  }
  text = *state;
  return State::good;
}

// Asks until all answers have arrived, with a state that the client must return, and then calls `done` with it.
void rounds(const CallPtr& call, const std::vector<Question>& asked, std::string_view state,
            const std::function<void()>& done) {
  std::string text;
  const State brought = take_state(call, text);
  if (brought == State::forged) return;
  const bool all =
      std::all_of(asked.begin(), asked.end(), [&](const Question& one) { return response(call, one.name).present(); });
  if (all && (state.empty() || (brought == State::good && text == state))) return done();
  std::string sealed;
  if (!state.empty())
    sealed =
        call->session().server().seal(call->params()["name"].string_or(""), call->session().options().owner, state);
  call->require_input(questions(asked), sealed);
}

void input_elicitation(const CallPtr& call) {
  rounds(call, {{"user_name", ask_for("What is your name?", "name", "string")}}, "", [&] {
    answer_text(call, fmt::format("Hello, {}!", response(call, "user_name")["content"]["name"].string_or("")));
  });
}
void input_sampling(const CallPtr& call) {
  rounds(call, {{"capital_question", ask_model("What is the capital of France?", 100)}}, "",
         [&] { answer_text(call, response(call, "capital_question")["content"]["text"].string_or("")); });
}
void input_roots(const CallPtr& call) {
  rounds(call, {{"client_roots", std::string(ask_roots)}}, "", [&] {
    std::string text = "Roots:";
    for (const json::Value root : response(call, "client_roots")["roots"]) text += " " + root["uri"].string_or("");
    answer_text(call, text);
  });
}
void input_state(const CallPtr& call) {
  rounds(call, {{"confirm", ask_for("Please confirm", "ok", "boolean")}}, "confirmed",
         [&] { answer_text(call, "state-ok"); });
}
void input_several(const CallPtr& call) {
  rounds(call,
         {{"user_name", ask_for("What is your name?", "name", "string")},
          {"greeting", ask_model("Generate a greeting", 50)},
          {"client_roots", std::string(ask_roots)}},
         "several", [&] { answer_text(call, "All inputs were received."); });
}
void input_rounds(const CallPtr& call) {
  std::string state;
  const State brought = take_state(call, state);
  if (brought == State::forged) return;
  const std::string name = call->params()["name"].string_or(""), owner = call->session().options().owner;
  const Server& server = call->session().server();
  if (state == "second" && response(call, "step2")) return answer_text(call, "Both steps are done.");
  if (state == "first" && response(call, "step1")) {
    return call->require_input(
        questions({{"step2", ask_for("Step 2: What is your favorite color?", "color", "string")}}),
        server.seal(name, owner, "second"));
  }
  call->require_input(questions({{"step1", ask_for("Step 1: What is your name?", "name", "string")}}),
                      server.seal(name, owner, "first"));
}
void input_capabilities(const CallPtr& call) {
  std::vector<Question> asked;
  if (has(call, "sampling")) asked.push_back({"question", ask_model("What is the capital of France?", 100)});
  if (has(call, "elicitation")) asked.push_back({"user_name", ask_for("What is your name?", "name", "string")});
  if (asked.empty()) return ok(call);
  rounds(call, asked, "", [&] { ok(call); });
}
void input_streaming(const CallPtr& call) {
  rounds(call, {{"confirm", ask_for("Please confirm", "ok", "boolean")}}, "", [&] { answer_text(call, "done"); });
}
void missing_capability(const CallPtr& call) {
  if (has(call, "sampling")) return ok(call);
  call->fail({missing_client_capability, "The client has no capability sampling.",
              R"({"requiredCapabilities":{"sampling":{}}})"});
}
void change_tools(const CallPtr& call) {
  call->session().server().announce("tools");
  ok(call);
}
void change_prompts(const CallPtr& call) {
  call->session().server().announce("prompts");
  ok(call);
}
void header_tool(const CallPtr& call) { answer_text(call, call->params()["arguments"]["region"].string_or("")); }

struct TestTool {
  std::string_view name;
  void (*function)(const CallPtr& call);
  std::string_view input = no_arguments;
};

constexpr TestTool test_tools[] = {
    {"test_simple_text", simple_text},
    {"test_image_content", image},
    {"test_audio_content", audio},
    {"test_embedded_resource", embedded},
    {"test_multiple_content_types", mixed},
    {"test_error_handling", failing},
    {"test_tool_with_logging", logging},
    {"test_logging_tool", logging},
    {"test_tool_with_progress", progress},
    {"test_sampling", sampling, R"({"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]})"},
    {"test_elicitation", elicitation,
     R"({"type":"object","properties":{"message":{"type":"string"}},"required":["message"]})"},
    {"test_elicitation_sep1034_defaults", elicitation_defaults},
    {"test_elicitation_sep1330_enums", elicitation_enums},
    {"test_missing_capability", missing_capability},
    {"test_streaming_elicitation", input_streaming},
    {"test_trigger_tool_change", change_tools},
    {"test_trigger_prompt_change", change_prompts},
    {"test_input_required_result_elicitation", input_elicitation},
    {"test_input_required_result_sampling", input_sampling},
    {"test_input_required_result_list_roots", input_roots},
    {"test_input_required_result_request_state", input_state},
    {"test_input_required_result_multiple_inputs", input_several},
    {"test_input_required_result_multi_round", input_rounds},
    {"test_input_required_result_tampered_state", input_state},
    {"test_input_required_result_capabilities", input_capabilities},
    {"json_schema_2020_12_tool", ok,
     R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",)"
     R"("$defs":{"address":{"$anchor":"addressDef","type":"object",)"
     R"("properties":{"street":{"type":"string"},"city":{"type":"string"}}}},)"
     R"("properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},)"
     R"("contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},)"
     R"("email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],)"
     R"("if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},)"
     R"("then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false})"},
    {"test_x_mcp_header", header_tool,
     R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}})"},
};

void answer_messages(const CallPtr& call, std::initializer_list<std::string> contents) {
  json::Writer result;
  result.begin_object().key("messages").begin_array();
  for (const std::string& content : contents)
    result.begin_object().member("role", "user").raw_member("content", content).end_object();
  call->answer(result.end_array().end_object().text());
}

void simple_prompt(const CallPtr& call) { answer_messages(call, {text_part("This is a simple prompt for testing.")}); }
void prompt_with_arguments(const CallPtr& call) {
  const json::Value arguments = call->params()["arguments"];
  answer_messages(call, {text_part(fmt::format("Prompt with arguments: arg1='{}', arg2='{}'",
                                               arguments["arg1"].string_or(""), arguments["arg2"].string_or("")))});
}
void prompt_with_resource(const CallPtr& call) {
  const std::string uri = call->params()["arguments"]["resourceUri"].string_or("");
  answer_messages(call, {resource_part(uri, "text/plain", "Embedded resource content for testing."),
                         text_part("Please process the embedded resource above.")});
}
void prompt_with_image(const CallPtr& call) {
  answer_messages(call, {data_part("image", png, "image/png"), text_part("Please analyze the image above.")});
}
void input_prompt(const CallPtr& call) {
  rounds(call, {{"user_context", ask_for("What context should the prompt use?", "context", "string")}}, "", [&] {
    answer_messages(call, {text_part(response(call, "user_context")["content"]["context"].string_or(""))});
  });
}

struct TestPrompt {
  std::string_view name;
  void (*function)(const CallPtr& call);
  std::string_view arguments = "[]";
};

constexpr TestPrompt test_prompts[] = {
    {"test_simple_prompt", simple_prompt},
    {"test_prompt_with_arguments", prompt_with_arguments,
     R"([{"name":"arg1","description":"First test argument","required":true},)"
     R"({"name":"arg2","description":"Second test argument","required":true}])"},
    {"test_prompt_with_embedded_resource", prompt_with_resource,
     R"([{"name":"resourceUri","description":"URI of the resource","required":true}])"},
    {"test_prompt_with_image", prompt_with_image},
    {"test_input_required_result_prompt", input_prompt},
};

struct TestResource {
  std::string_view uri, name, mime_type, text, blob;
};

constexpr TestResource test_resources[] = {
    {"test://static-text", "Static Text Resource", "text/plain", "This is the content of the static text resource.",
     ""},
    {"test://static-binary", "Static Binary Resource", "image/png", "", png},
    {"test://watched-resource", "Watched Resource", "text/plain", "Watched resource content", ""},
};

void answer_contents(const CallPtr& call, std::string_view uri, std::string_view mime_type, std::string_view key,
                     std::string_view value) {
  json::Writer result;
  result.begin_object().key("contents").begin_array().begin_object().member("uri", uri).member("mimeType", mime_type);
  call->answer(result.member(key, value).end_object().end_array().end_object().text(), Caching{});
}

class ConformanceFixture : public Extension {
 public:
  void write_tools(json::Writer& list) const override {
    for (const TestTool& tool : test_tools) {
      list.begin_object().member("name", tool.name).member("description", "For the conformance suite");
      list.raw_member("inputSchema", tool.input).end_object();
    }
  }

  void write_prompts(json::Writer& list) const override {
    for (const TestPrompt& prompt : test_prompts) {
      list.begin_object().member("name", prompt.name).member("description", "For the conformance suite");
      list.raw_member("arguments", prompt.arguments).end_object();
    }
  }

  void write_resources(json::Writer& list) const override {
    for (const TestResource& resource : test_resources) {
      list.begin_object().member("uri", resource.uri).member("name", resource.name);
      list.member("description", "For the conformance suite").member("mimeType", resource.mime_type).end_object();
    }
  }

  void write_templates(json::Writer& list) const override {
    list.begin_object().member("uriTemplate", "test://template/{id}/data").member("name", "Resource Template");
    list.member("description", "For the conformance suite").member("mimeType", "application/json").end_object();
  }

  bool call_tool(const CallPtr& call, std::string_view name) const override {
    for (const TestTool& tool : test_tools) {
      if (tool.name != name) continue;
      tool.function(call);
      return true;
    }
    return false;
  }

  bool get_prompt(const CallPtr& call, std::string_view name) const override {
    for (const TestPrompt& prompt : test_prompts) {
      if (prompt.name != name) continue;
      prompt.function(call);
      return true;
    }
    return false;
  }

  bool is_resource(std::string_view uri) const override {
    return std::any_of(std::begin(test_resources), std::end(test_resources),
                       [&](const TestResource& resource) { return resource.uri == uri; });
  }

  bool read_resource(const CallPtr& call, std::string_view uri) const override {
    for (const TestResource& resource : test_resources) {
      if (resource.uri != uri) continue;
      const bool binary = !resource.blob.empty();
      answer_contents(call, uri, resource.mime_type, binary ? "blob" : "text", binary ? resource.blob : resource.text);
      return true;
    }
    constexpr std::string_view begin = "test://template/", end = "/data";
    if (!uri.starts_with(begin) || !uri.ends_with(end) || uri.size() <= begin.size() + end.size()) return false;
    const std::string id(uri.substr(begin.size(), uri.size() - begin.size() - end.size()));
    json::Writer text;
    text.begin_object().member("id", id).member("templateTest", true).member("data", "Data for ID: " + id).end_object();
    answer_contents(call, uri, "application/json", "text", text.text());
    return true;
  }
};

}  // namespace
}  // namespace muniment::mcp

int main(int argc, char** argv) {
  const muniment::mcp::ConformanceFixture fixture;
  return muniment::daemon::run_program(argc, argv, &fixture);
}
