#include "cli/doctor.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "cli/autostart.hpp"
#include "cli/client.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

// Settings whose loss of writes would make an ack a lie; the daemon refuses to start on them.
constexpr std::string_view durable_settings[] = {"fsync", "synchronous_commit", "full_page_writes"};

class Examination {
 public:
  explicit Examination(const LoadedConfig& loaded) : loaded_(loaded), config_(loaded.values) {}

  std::vector<Finding> run() {
    look_at_config();
    look_at_data();
    look_at_disk();
    look_at_programs();
    look_at_cluster();
    look_at_socket();
    look_at_log();
    return std::move(findings_);
  }

 private:
  void well(std::string_view subject, std::string text) {
    findings_.push_back({Level::well, std::string(subject), std::move(text), "", ""});
  }
  void found(Level level, std::string_view subject, std::string text, std::string mend,
             std::string_view anchor) {
    findings_.push_back({level, std::string(subject), std::move(text), std::move(mend),
                         fmt::format("docs/runbook.md#{}", anchor)});
  }

  void look_at_config() {
    for (const Error& problem : loaded_.problems) {
      found(Level::broken, "config", problem.message, "muniment config check", "configuration");
    }
    if (loaded_.problems.empty()) {
      well("config", loaded_.file.empty() ? "defaults, environment and flags" : loaded_.file);
    }
  }

  void look_at_data() {
    struct stat status {};
    if (::stat(config_.data.c_str(), &status) != 0) {
      found(errno == ENOENT ? Level::warning : Level::broken, "data",
            fmt::format("{}: {}", config_.data, std::strerror(errno)), "muniment up", "data-folder");
      return;
    }
    if (!S_ISDIR(status.st_mode)) {
      found(Level::broken, "data", config_.data + " is not a folder", "muniment --data DIR up",
            "data-folder");
    } else if (status.st_uid != ::geteuid() && ::geteuid() != 0) {
      found(Level::broken, "data", fmt::format("{} belongs to uid {}, you are uid {}", config_.data,
                                               status.st_uid, ::geteuid()),
            fmt::format("sudo chown -R {} {}", ::geteuid(), config_.data), "data-folder");
    } else if ((status.st_mode & 0006U) != 0) {
      found(Level::broken, "data", fmt::format("{} is open to everybody (mode {:o})", config_.data,
                                               status.st_mode & 0777U),
            "chmod 0700 " + config_.data, "data-folder");
    } else {
      well("data", fmt::format("{} (mode {:o})", config_.data, status.st_mode & 0777U));
    }
  }

  void look_at_disk() {
    fs::path place = config_.data;
    std::error_code failed;
    while (!fs::exists(place, failed) && place.has_relative_path()) place = place.parent_path();
    struct statvfs disk {};
    if (::statvfs(place.c_str(), &disk) != 0) return;
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    const std::uint64_t total = std::uint64_t{disk.f_blocks} * disk.f_frsize;
    const std::uint64_t share = total / 100 * static_cast<std::uint64_t>(config_.disk_reserve_percent);
    const std::uint64_t reserve = std::max(static_cast<std::uint64_t>(config_.disk_reserve_bytes), share);
    const std::string text = fmt::format("{} of {} free, {} kept back", human_size(free),
                                         human_size(total), human_size(reserve));
    if (free < reserve) {
      found(Level::broken, "disk", text + ": artifacts are refused",
            "free some space, or lower disk_reserve_bytes", "disk-reserve");
    } else if (free < 2 * reserve) {
      found(Level::warning, "disk", text, "free some space", "disk-reserve");
    } else {
      well("disk", text);
    }
  }

  // Debian keeps each major version's server programs in a folder of its own.
  void look_at_programs() {
    if (auto daemon = find_daemon(); !daemon) {
      found(Level::broken, "munimentd", daemon.error().message, "scripts/setup", "setup");
    } else {
      well("munimentd", *daemon);
    }
    if (!config_.database.empty()) return;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", failed)) {
      const fs::path programs = entry.path() / "bin";
      if (::access((programs / "postgres").c_str(), X_OK) == 0 &&
          ::access((programs / "initdb").c_str(), X_OK) == 0) {
        majors_.push_back(entry.path().filename().string());
      }
    }
    std::sort(majors_.begin(), majors_.end());
    if (majors_.empty()) {
      found(Level::broken, "postgres", "the server's programs are not under /usr/lib/postgresql",
            "scripts/setup", "postgres-missing");
    } else {
      well("postgres", "version " + majors_.back());
    }
  }

  void look_at_cluster() {
    if (!config_.database.empty()) return;
    const std::string folder = config_.data + "/postgres";
    std::ifstream version(folder + "/PG_VERSION");
    std::string major;
    if (!std::getline(version, major)) return;
    if (std::find(majors_.begin(), majors_.end(), major) == majors_.end()) {
      found(Level::broken, "cluster", fmt::format("was made by Postgres {}, which is not installed", major),
            "sudo apt-get install postgresql-" + major, "postgres-major");
    } else {
      well("cluster", "made by Postgres " + major);
    }
    look_at_durability(folder);
  }

  void look_at_durability(const std::string& folder) {
    for (const char* name : {"/postgresql.conf", "/postgresql.auto.conf"}) {
      std::ifstream file(folder + name);
      for (std::string line; std::getline(file, line);) {
        line.erase(std::remove_if(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\''; }),
                   line.end());
        for (const std::string_view setting : durable_settings) {
          if (line.rfind(std::string(setting) + "=off", 0) != 0) continue;
          found(Level::broken, "cluster", fmt::format("{}{} turns {} off: acks would not be durable",
                                                      folder, name, setting),
                fmt::format("remove that line from {}{}", folder, name), "postgres-durability");
        }
      }
    }
  }

  void look_at_socket() {
    std::error_code failed;
    const bool there = fs::exists(fs::symlink_status(config_.socket, failed));
    auto client = Client::connect(config_.socket);
    if (!client) {
      const bool stale = there && client.error().code == Errc::unavailable;
      if (client.error().code == Errc::denied) {
        found(Level::broken, "socket", client.error().message, "ask its owner to add your uid to allowed_uids",
              "access");
      } else {
        found(Level::warning, "socket", stale ? config_.socket + " is there and nothing listens"
                                              : "no daemon runs", "muniment up", "not-running");
      }
      return;
    }
    auto health = client->call("server.health", "{}");
    if (!health) {
      found(Level::broken, "socket", health.error().message, "muniment status", "health");
    } else {
      well("socket", fmt::format("munimentd (pid {}) answers at {}", client->daemon_pid(), config_.socket));
    }
  }

  void look_at_log() {
    std::error_code failed;
    const std::string path = config_.data + "/munimentd.log";
    const std::uintmax_t size = fs::file_size(path, failed);
    if (failed) return;
    constexpr std::uintmax_t large = std::uintmax_t{1} << 30;
    if (size > large) {
      found(Level::warning, "log", fmt::format("{} has grown to {} at level {}", path, human_size(size),
                                               config_.log_level),
            "truncate -s 0 " + path, "daemon-log");
    } else {
      well("log", fmt::format("{} ({}), level {}", path, human_size(size), config_.log_level));
    }
  }

  const LoadedConfig& loaded_;
  const Config& config_;
  std::vector<std::string> majors_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> examine(const LoadedConfig& loaded) { return Examination(loaded).run(); }

std::string findings_json(const std::vector<Finding>& findings) {
  constexpr std::string_view levels[] = {"ok", "warning", "broken"};
  json::Writer writer;
  writer.begin_object().key("findings").begin_array();
  for (const Finding& finding : findings) {
    writer.begin_object().member("subject", finding.subject);
    writer.member("level", levels[static_cast<std::size_t>(finding.level)]).member("text", finding.text);
    writer.member("mend", finding.mend).member("doc", finding.doc).end_object();
  }
  writer.end_array().end_object();
  return std::move(writer).text();
}

}  // namespace muniment::cli
