#include "agent/mps/state_file.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/escape.hpp"

namespace agent::mps {
namespace {

using nlohmann::json;
using std::chrono::system_clock;

constexpr std::size_t most_bytes = 65'536, most_reason = 512;

/// No link is followed: what is outside the folder is not ours to read.
bool is_recent(const std::string& path, system_clock::time_point now) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return false;
  const auto written = system_clock::from_time_t(file.st_mtim.tv_sec);
  return file.st_size <= static_cast<off_t>(most_bytes) && now - written <= state_limit;
}

}  // namespace

std::expected<void, std::string> write_state(const std::string& path, const node_state& state) {
  auto list = json::object(), limited = json::array();
  for (const auto& [card, reason] : state.failed) list[card] = text::utf8_clean(reason, most_reason);
  for (const auto& card : state.limited) limited.push_back(card);
  std::error_code wrong;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), wrong);
  const auto made = path + ".new";
  std::ofstream file(made, std::ios::trunc);
  const json content{{"failed", std::move(list)}, {"limited", std::move(limited)}};
  file << content.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
  file.close();
  if (!file) return std::unexpected("cannot write " + made);
  using enum std::filesystem::perms;
  std::filesystem::permissions(made, owner_read | owner_write | group_read | others_read, wrong);
  std::filesystem::rename(made, path, wrong);
  if (wrong) return std::unexpected("cannot replace " + path + ": " + wrong.message());
  return {};
}

node_state read_state(const std::string& path, system_clock::time_point now) {
  if (!is_recent(path, now)) return {};
  std::ifstream file(path);
  std::string text(most_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const auto state = json::parse(text, nullptr, false);
  if (!state.is_object()) return {};
  node_state out;
  if (const auto list = state.find("failed"); list != state.end() && list->is_object())
    for (const auto& [card, reason] : list->items())
      if (reason.is_string()) out.failed.emplace(card, text::utf8_clean(reason.get<std::string>(), most_reason));
  if (const auto list = state.find("limited"); list != state.end() && list->is_array())
    for (const auto& card : *list)
      if (card.is_string()) out.limited.insert(card.get<std::string>());
  return out;
}

}  // namespace agent::mps
