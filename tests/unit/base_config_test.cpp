// Tests of the sources of configuration values, and of the errors for invalid ones.
#include "base/config/config.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/config/reporter_listen.hpp"
#include "base/config/standbys.hpp"
#include "base/config/webhooks.hpp"
#include "base/limits.hpp"

namespace muniment {
namespace {

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/muniment-config-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    inputs_.environment = [this](const char* name) -> const char* {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
    inputs_.is_root = false;
    inputs_.flags = {{"data", folder_}};
    inputs_.system_file = "";
    environment_["HOME"] = "/home/ann";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  static std::string origin(const LoadedConfig& loaded, std::string_view key) {
    for (std::size_t i = 0; i < config_table().size(); ++i) {
      if (config_table()[i].key == key) return loaded.origins[i].where;
    }
    return "no such key";
  }

  std::string first_problem() {
    const LoadedConfig loaded = load_config(inputs_);
    return loaded.problems.empty() ? "" : loaded.problems.front().message;
  }

  std::string folder_;
  std::map<std::string, std::string> environment_;
  ConfigInputs inputs_;
};

TEST_F(ConfigTest, PricesAreATableForEachModel) {
  write("muniment.toml",
        "[prices.\"gpt-4o\"]\ninput = 2.5\noutput = 10\n[prices.mini]\ninput = 0\noutput = 1\ncached_input = 0.5\n");
  const LoadedConfig loaded = load_config(inputs_);
  EXPECT_TRUE(loaded.problems.empty()) << loaded.problems.front().message;
  EXPECT_EQ(loaded.values.prices,
            R"({"gpt-4o":{"input":2.5,"output":10},"mini":{"cached_input":0.5,"input":0,"output":1}})");
  EXPECT_EQ(origin(loaded, "prices"), folder_ + "/muniment.toml");
}

TEST_F(ConfigTest, APriceThatIsNoneIsNamedWithItsModel) {
  for (const auto& [text, said] : std::map<std::string, std::string>{
           {"[prices.a]\ninput = 1\n", "prices.\"a\": output is missing"},
           {"[prices.a]\ninput = -1\noutput = 1\n", "prices.\"a\": input is not a number of at least 0"},
           {"[prices.a]\ninput = \"1\"\noutput = 1\n", "prices.\"a\": input is not a number of at least 0"},
           {"[prices.a]\ninput = 1\noutput = nan\n", "prices.\"a\": output is not a number of at least 0"},
           {"[prices.a]\ninput = 1\noutput = 1\nprompt = 1\n",
            "prices.\"a\": unknown key \"prompt\"; other settings precede the first [table]"},
           {"[prices]\na = 1\n", "prices.\"a\": it is not a table"},
           {"prices = 1\n", "prices: give a table for each model"}}) {
    write("muniment.toml", text);
    EXPECT_NE(first_problem().find(said), std::string::npos) << text << first_problem();
  }
}

TEST_F(ConfigTest, WebhooksAreATableForEachReceiver) {
  write("muniment.toml",
        "[webhooks.ci]\nurl = \"https://ci.example/hook?t=1\"\nsecret_file = \"/etc/ci\"\ntypes = [\"task.*\", "
        "\"run.ended\"]\n[webhooks.b]\nurl = \"http://[::1]:8000\"\nsecret_file = \"/etc/b\"\n");
  const LoadedConfig loaded = load_config(inputs_);
  ASSERT_TRUE(loaded.problems.empty()) << loaded.problems.front().message;
  const auto webhooks = parse_webhooks(loaded.values.webhooks);
  ASSERT_TRUE(webhooks.ok()) << webhooks.error().message;
  ASSERT_EQ(webhooks->size(), 2U);
  EXPECT_EQ((*webhooks)[1].name, "ci");
  EXPECT_EQ((*webhooks)[1].url, "https://ci.example/hook?t=1");
  EXPECT_EQ(shown_url((*webhooks)[1].url), "https://ci.example/…");
  EXPECT_EQ(shown_url("http://h:8080"), "http://h:8080");
  EXPECT_EQ(shown_url("http://h/"), "http://h");
  EXPECT_EQ(shown_url("http://h?token=x"), "http://h/…");
  EXPECT_EQ((*webhooks)[1].types, (std::vector<std::string>{"task.*", "run.ended"}));
  EXPECT_EQ((*webhooks)[0].types.size(), 5U);
}

TEST_F(ConfigTest, AWebhookThatIsNoneIsNamed) {
  const std::string url = "url = \"https://h/\"\n", secret = "secret_file = \"/s\"\n";
  const std::string long_name(limits::webhook_name_bytes_max + 1, 'a');
  for (const auto& [text, said] : std::map<std::string, std::string>{
           {"[webhooks.a]\n" + secret, "webhooks.a: url: give http://"},
           {"[webhooks.a]\nurl = \"ftp://h\"\n" + secret, "webhooks.a: url: give http://"},
           {"[webhooks.a]\nurl = \"https://\"\n" + secret, "the host is missing"},
           {"[webhooks.a]\nurl = \"https://u:p@h/\"\n" + secret, "url has a user or a password"},
           {"[webhooks.a]\nurl = \"https://h/a b\"\n" + secret, "percent-encode"},
           {"[webhooks.a]\nurl = \"https://h/" + std::string(limits::webhook_url_bytes_max, 'a') + "\"\n" + secret,
            "limit 2000"},
           {"[webhooks.a]\n" + url, "secret_file: give the absolute path"},
           {"[webhooks.a]\n" + url + "secret_file = \"s\"\n", "secret_file: give the absolute path"},
           {"[webhooks.a]\n" + url + secret + "types = []\n", "types: give a list"},
           {"[webhooks.a]\n" + url + secret + "types = \"task.*\"\n", "types: give a list"},
           {"[webhooks.a]\n" + url + secret + "types = [\"*.ended\"]\n", "neither a type nor a prefix"},
           {"[webhooks.a]\n" + url + secret + "workers = 3\n", "other settings precede the first [table]"},
           {"[webhooks.a]\n" + url + secret + "secret = \"x\"\n", "unknown key \"secret\""},
           {"[webhooks.A]\n" + url + secret, "a name has 1 to 32 characters"},
           {"[webhooks." + long_name + "]\n" + url + secret, "a name has 1 to 32 characters"},
           {"[webhooks]\na = 1\n", "it is not a table"},
           {"webhooks = 1\n", "give a table for each webhook"}}) {
    write("muniment.toml", text);
    EXPECT_NE(first_problem().find(said), std::string::npos) << text << first_problem();
  }
  std::string many;
  for (std::size_t i = 0; i <= limits::webhooks_max; ++i)
    many += "[webhooks.w" + std::to_string(i) + "]\n" + url + secret;
  write("muniment.toml", many);
  EXPECT_NE(first_problem().find("9 webhooks, limit 8"), std::string::npos) << first_problem();
}

TEST_F(ConfigTest, EveryDefaultIsAllowed) {
  const LoadedConfig loaded = load_config(inputs_);
  EXPECT_TRUE(loaded.problems.empty()) << loaded.problems.front().message;
  EXPECT_EQ(loaded.values.artifact_bytes_max, std::int64_t{4} << 30);
  EXPECT_EQ(loaded.values.log_level, "info");
  EXPECT_EQ(loaded.values.socket, folder_ + "/munimentd.sock");
  EXPECT_EQ(origin(loaded, "workers"), "default");
  EXPECT_EQ(loaded.file, "");
}

TEST_F(ConfigTest, TheFlagGoesOverTheEnvironmentOverTheFileOverTheDefault) {
  const std::string file = write("muniment.toml", "workers = 7\n");
  EXPECT_EQ(load_config(inputs_).values.workers, 7);
  EXPECT_EQ(origin(load_config(inputs_), "workers"), file);
  environment_["MUNIMENT_WORKERS"] = "8";
  EXPECT_EQ(load_config(inputs_).values.workers, 8);
  EXPECT_EQ(origin(load_config(inputs_), "workers"), "MUNIMENT_WORKERS");
  inputs_.flags.emplace_back("workers", "9");
  EXPECT_EQ(load_config(inputs_).values.workers, 9);
  EXPECT_EQ(origin(load_config(inputs_), "workers"), "--workers");
}

TEST_F(ConfigTest, ReportersComeInWhereItIsMeant) {
  const auto listen = [&](const std::string& where, const std::string& clients = "", const std::string& password = "/p",
                          const std::string& database = "") {
    Config config;
    config.reporter_listen = where;
    config.reporter_clients = clients;
    config.reporter_password_file = password;
    config.database = database;
    const auto found = reporter_listen_of(config);
    if (!found) return found.error().message;
    if (!*found) return std::string("nowhere");
    std::string text = (*found)->place.text();
    for (const std::string& client : (*found)->clients) text += " " + client;
    return text;
  };
  EXPECT_EQ(listen(""), "nowhere");
  EXPECT_EQ(listen("127.0.0.1:5433"), "127.0.0.1:5433 127.0.0.0/8");
  EXPECT_EQ(listen("localhost:1"), "127.0.0.1:1 127.0.0.0/8");
  EXPECT_EQ(listen("[::1]:65535"), "[::1]:65535 ::1/128");
  EXPECT_EQ(listen("0.0.0.0:5433", "10.1.2.0/24, 192.0.2.1,fd00::/8"),
            "0.0.0.0:5433 10.1.2.0/24 192.0.2.1/32 fd00::/8");
  for (const char* bad :
       {"127.0.0.1", "127.0.0.1:", ":5433", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:5433x", "::1:5433",
        "[127.0.0.1]:5433", "db.example:5433", "127.0.0.256:5433", "[]:5433", "[::1:5433"}) {
    EXPECT_NE(listen(bad).find("give a numeric address and a port"), std::string::npos) << bad;
  }
  for (const char* bad :
       {"10.1.2.0/33", "fd00::/129", "10.1.2/24", "all", "10.1.2.0/24,", " ", "10.0.0.0/-1", "10.0.0.0/8 trust"}) {
    EXPECT_NE(listen("127.0.0.1:1", bad).find("is not a network"), std::string::npos)
        << bad << ": " << listen("127.0.0.1:1", bad);
  }
  EXPECT_NE(listen("192.0.2.1:5433").find("other machines can reach this address"), std::string::npos);
  EXPECT_NE(listen("[::]:5433").find("other machines can reach this address"), std::string::npos);
  EXPECT_NE(listen("127.0.0.1:5433", "", "").find("requires a password"), std::string::npos);
  EXPECT_NE(listen("127.0.0.1:5433", "", "/p", "postgresql://db/log").find("requires the private Postgres"),
            std::string::npos);
  std::string many = "10.0.0.0/8";
  for (std::size_t i = 1; i < limits::reporter_clients_max; ++i) many += ",10.0.0.0/8";
  EXPECT_EQ(listen("127.0.0.1:1", many).find("names"), std::string::npos);
  EXPECT_NE(listen("127.0.0.1:1", many + ",10.0.0.0/8").find("names 33 networks, limit 32"), std::string::npos);
}

TEST_F(ConfigTest, ACommandIsAListOfTextsWhereverItComesFrom) {
  using Command = std::vector<std::string>;
  write("muniment.toml", "expansion_hook = [\"/bin/a, b\", '\"quoted\"', \"\"]\nrerank_hook = \"/bin/alone\"\n");
  const LoadedConfig loaded = load_config(inputs_);
  ASSERT_TRUE(loaded.problems.empty()) << loaded.problems.front().message;
  EXPECT_EQ(loaded.values.expansion_hook, (Command{"/bin/a, b", "\"quoted\"", ""}));
  EXPECT_EQ(loaded.values.rerank_hook, Command{"/bin/alone"});
  environment_["MUNIMENT_RERANK_HOOK"] = R"(["/bin/python3", "/x.py"])";
  EXPECT_EQ(load_config(inputs_).values.rerank_hook, (Command{"/bin/python3", "/x.py"}));
  for (const ConfigKey& key : config_table()) {
    if (key.key != "expansion_hook") continue;
    EXPECT_EQ(shown_value(loaded.values, key), R"(["/bin/a, b","\"quoted\"",""])");
    EXPECT_EQ(type_of(key), "texts");
  }
}

TEST_F(ConfigTest, ACommandIsAnAbsolutePathAndAFewArguments) {
  environment_["MUNIMENT_EXPANSION_HOOK"] = "expand.py";
  EXPECT_NE(first_problem().find("give the absolute path of a program"), std::string::npos) << first_problem();
  environment_["MUNIMENT_EXPANSION_HOOK"] = "[\"/bin/a\", 7]";
  EXPECT_NE(first_problem().find("give a list of texts"), std::string::npos) << first_problem();
  environment_["MUNIMENT_EXPANSION_HOOK"] = "[\"/bin/a\"";
  EXPECT_NE(first_problem().find("give a list of texts"), std::string::npos) << first_problem();
  const auto command = [](std::size_t parts) {
    std::string list = "[\"/bin/a\"";
    for (std::size_t i = 1; i < parts; ++i) list += ",\"x\"";
    return list + "]";
  };
  environment_["MUNIMENT_EXPANSION_HOOK"] = command(limits::hook_arguments_max);
  EXPECT_EQ(first_problem(), "");
  environment_["MUNIMENT_EXPANSION_HOOK"] = command(limits::hook_arguments_max + 1);
  EXPECT_NE(first_problem().find("at most 64 parts"), std::string::npos) << first_problem();
  environment_.erase("MUNIMENT_EXPANSION_HOOK");
  write("muniment.toml", "rerank_hook = [\"/bin/a\", 7]\n");
  EXPECT_NE(first_problem().find("a list of texts must hold only texts"), std::string::npos) << first_problem();
  write("muniment.toml", "rerank_url = \"ftp://x\"\n");
  EXPECT_NE(first_problem().find("http://"), std::string::npos) << first_problem();
}

TEST_F(ConfigTest, TheDataFolderDependsOnWhoAsks) {
  inputs_.flags.clear();
  EXPECT_EQ(load_config(inputs_).values.data, "/home/ann/.local/share/muniment");
  environment_["XDG_DATA_HOME"] = "/data/ann";
  EXPECT_EQ(load_config(inputs_).values.data, "/data/ann/muniment");
  inputs_.is_root = true;
  EXPECT_EQ(load_config(inputs_).values.data, "/var/lib/muniment");
  environment_["MUNIMENT_DATA"] = "relative/";
  EXPECT_EQ(load_config(inputs_).values.data, std::filesystem::current_path().string() + "/relative");
}

TEST_F(ConfigTest, TheMachinesFileIsReadWhereNobodyNamesAPlaceAndThereIsNoInstance) {
  inputs_.flags.clear();
  environment_["HOME"] = folder_;
  inputs_.system_file = write("system.toml", "data = \"/srv/muniment\"\nsocket = \"/run/m.sock\"\n");
  EXPECT_EQ(load_config(inputs_).file, *inputs_.system_file);
  EXPECT_EQ(load_config(inputs_).values.data, "/srv/muniment");
  EXPECT_EQ(load_config(inputs_).values.socket, "/run/m.sock");
  EXPECT_TRUE(load_config(inputs_).problems.empty()) << first_problem();
  for (const char* name : {"data", "socket", "database"}) {
    inputs_.flags = {{name, name == std::string("database") ? "postgresql://x/y" : "/elsewhere"}};
    EXPECT_EQ(load_config(inputs_).file, "") << name;
  }
  inputs_.flags.clear();
  environment_["MUNIMENT_DATA"] = "/elsewhere";
  EXPECT_EQ(load_config(inputs_).file, "");
  environment_.erase("MUNIMENT_DATA");
  std::filesystem::create_directories(folder_ + "/.local/share/muniment");
  EXPECT_EQ(load_config(inputs_).file, "") << "the user has an instance";
  inputs_.is_root = true;
  EXPECT_EQ(load_config(inputs_).file, *inputs_.system_file);
  inputs_.system_file = folder_ + "/absent.toml";
  EXPECT_EQ(load_config(inputs_).file, "");
}

TEST_F(ConfigTest, BytesMayBeWrittenWithTheirUnit) {
  write("muniment.toml", "artifact_bytes_max = \"16 MiB\"\ndisk_reserve_bytes = 1024\n");
  const LoadedConfig loaded = load_config(inputs_);
  EXPECT_EQ(loaded.values.artifact_bytes_max, 16 << 20);
  EXPECT_EQ(loaded.values.disk_reserve_bytes, 1024);
}

TEST_F(ConfigTest, UidsAreAListInTheFileAndCommasElsewhere) {
  write("muniment.toml", "allowed_uids = [1000, 1001]\n");
  EXPECT_EQ(load_config(inputs_).values.allowed_uids, (std::vector<std::int64_t>{1000, 1001}));
  environment_["MUNIMENT_ALLOWED_UIDS"] = "7, 8";
  EXPECT_EQ(load_config(inputs_).values.allowed_uids, (std::vector<std::int64_t>{7, 8}));
}

TEST_F(ConfigTest, AKeyOfEarlierVersionsHasNoEffect) {
  write("muniment.toml", "use_lite = \"/var/cache/muniment/use-lite-0.2.0\"\n");
  const LoadedConfig loaded = load_config(inputs_);
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.values.models, "");
}

TEST_F(ConfigTest, AnUnknownKeyNamesTheNearest) {
  const std::string file = write("muniment.toml", "snapshot_event = 3\n");
  EXPECT_EQ(first_problem(), file + ": unknown key \"snapshot_event\". Did you mean \"snapshot_events\"?");
}

TEST_F(ConfigTest, ABrokenFileIsNamedWithItsLine) {
  const std::string file = write("muniment.toml", "workers = 2\nlog_level = info\n");
  EXPECT_EQ(first_problem().rfind(file + ":2:", 0), 0U) << first_problem();
}

TEST_F(ConfigTest, AFileThatIsAskedForMustBeThere) {
  inputs_.file = folder_ + "/absent.toml";
  EXPECT_EQ(first_problem(), "the configuration file: opening " + folder_ + "/absent.toml: No such file or directory");
}

// Root may read every file, so the test runs as another user during this object's lifetime.
class Nobody {
 public:
  Nobody() { done_ = ::geteuid() != 0 || ::seteuid(65534) == 0; }
  ~Nobody() {
    if (::getuid() == 0 && ::seteuid(0) != 0) std::abort();
  }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;
  bool done() const { return done_; }

 private:
  bool done_ = false;
};

TEST_F(ConfigTest, AFileThatMayNotBeReadIsLeftOutByTheCommandLineAndByNobodyElse) {
  const std::string file = write("muniment.toml", "workers = 7\n");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  std::filesystem::permissions(folder_, std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  const Nobody nobody;
  ASSERT_TRUE(nobody.done());
  EXPECT_EQ(first_problem(), "the configuration file: opening " + file + ": Permission denied");
  inputs_.may_go_without = true;
  EXPECT_EQ(first_problem(), "");
  EXPECT_EQ(load_config(inputs_).unread, file);
  EXPECT_EQ(load_config(inputs_).values.workers, 16);
  inputs_.file = file;
  EXPECT_NE(first_problem(), "") << "it was named";
}

TEST_F(ConfigTest, AFolderOrAFileWithoutEndIsNoEmptyConfiguration) {
  inputs_.file = folder_;
  EXPECT_EQ(first_problem(), "the configuration file: reading " + folder_ + ": is a folder; a file is required");
  inputs_.file = write("large.toml", std::string(limits::config_file_bytes_max, '#'));
  EXPECT_EQ(first_problem(), "");
  inputs_.file = write("large.toml", std::string(limits::config_file_bytes_max + 1, '#'));
  EXPECT_EQ(first_problem(),
            "the configuration file: reading " + inputs_.file + ": more than 1,048,576 bytes, the limit");
  inputs_.file = "/dev/null";
  EXPECT_EQ(first_problem(), "");
}

TEST_F(ConfigTest, ValuesOutsideTheirRangeAreRefusedAndTheFormerOneStays) {
  environment_["MUNIMENT_WORKERS"] = "0";
  EXPECT_EQ(first_problem(), "MUNIMENT_WORKERS: workers = \"0\": give 1 to 256");
  EXPECT_EQ(load_config(inputs_).values.workers, 16);
  environment_["MUNIMENT_WORKERS"] = "four";
  EXPECT_EQ(first_problem(), "MUNIMENT_WORKERS: workers = \"four\": give a whole number");
  environment_.erase("MUNIMENT_WORKERS");
  environment_["MUNIMENT_ARTIFACT_BYTES_MAX"] = "9999999999 GiB";
  EXPECT_NE(first_problem(), "");
}

TEST_F(ConfigTest, TheFolderCannotBeMovedByTheFileInIt) {
  const std::string beside = write("muniment.toml", "data = \"/elsewhere\"\n");
  EXPECT_NE(first_problem(), "");
  EXPECT_EQ(load_config(inputs_).values.data, folder_);
  inputs_.flags.clear();
  inputs_.file = beside;
  EXPECT_EQ(load_config(inputs_).values.data, "/elsewhere");
}

TEST_F(ConfigTest, APasswordIsRefusedOnTheCommandLineAndNeverShown) {
  const std::string uri = "postgresql://ann:secret@db:5432/log";
  inputs_.flags.emplace_back("database", uri);
  EXPECT_NE(first_problem().find("command lines are visible to other users"), std::string::npos);
  inputs_.flags.pop_back();
  environment_["MUNIMENT_DATABASE"] = uri;
  const LoadedConfig loaded = load_config(inputs_);
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.values.database, uri);
  EXPECT_EQ(shown_value(loaded.values, config_table()[1]), "postgresql://ann:***@db:5432/log");
}

TEST_F(ConfigTest, ASocketPathThatDoesNotFitIsRefusedWithTheWayOut) {
  environment_["MUNIMENT_SOCKET"] = "/" + std::string(107, 'x');
  EXPECT_NE(first_problem().find("limit 107"), std::string::npos);
  environment_["MUNIMENT_SOCKET"] = "/" + std::string(106, 'x');
  EXPECT_EQ(first_problem(), "");
}

TEST(Standbys, AreNamedExactlyAndAtLeastOneOfThemIsRequired) {
  const auto read = [](const std::string& names, std::int64_t required) {
    Config config;
    config.standbys = names;
    config.required_standbys = required;
    return standbys_of(config);
  };
  EXPECT_EQ(read("", 2)->required, 2);
  EXPECT_TRUE(read("", 2)->names.empty());
  EXPECT_EQ(read("pg2, pg 3 ,PG2", 0)->names, (std::vector<std::string>{"pg2", "pg 3", "PG2"}));
  EXPECT_EQ(read("pg2, pg3", 0)->required, 1);
  EXPECT_EQ(read("pg2, pg3", 2)->required, 2);
  const auto refused = [&](const std::string& names, std::int64_t required) {
    const auto found = read(names, required);
    return found ? std::string() : found.error().message;
  };
  EXPECT_NE(refused("pg2, pg3", 3).find("required_standbys is 3, but only 2 are named"), std::string::npos);
  EXPECT_NE(refused("pg2, pg2", 1).find("repeated"), std::string::npos);
  for (const std::string bad : {"*", "pg2,,pg3", " ", ",", "pg2, *"})
    EXPECT_NE(refused(bad, 1).find("application_name"), std::string::npos) << bad;
  const std::string longest(limits::standby_name_bytes_max, 'a');
  EXPECT_EQ(refused(longest, 1), "");
  EXPECT_NE(refused(longest + "a", 1).find("at most 63 bytes"), std::string::npos);
  std::string many = "s";
  for (std::size_t i = 1; i < limits::standbys_max; ++i) many += ",s" + std::to_string(i);
  EXPECT_EQ(refused(many, 1), "");
  EXPECT_NE(refused(many + ",one", 1).find("at most 100 names"), std::string::npos);
}

}  // namespace
}  // namespace muniment
