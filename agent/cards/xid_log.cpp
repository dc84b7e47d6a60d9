#include "agent/cards/xid_log.hpp"

#include <utility>

#include "api/xid.hpp"
#include "text/list.hpp"

namespace agent::cards {

using std::chrono::milliseconds;

std::string xid_line::numbers() const {
  std::vector<std::string> out;
  for (const auto xid : xids) out.push_back(std::to_string(xid));
  const auto text = text::joined(out);
  return count > xids.size() ? text + " and " + std::to_string(count - xids.size()) + " more" : text;
}

std::string xid_line::names() const {
  std::vector<std::string_view> out;
  for (const auto xid : xids)
    if (const auto name = api::name_of(xid); !name.empty()) out.push_back(name);
  return text::joined(out);
}

std::optional<xid_line> xid_log::see(const xid_note& note, milliseconds now) {
  auto& [begin, later] = windows_.try_emplace(note.card, window{now - window_length, {}}).first->second;
  later.card = note.card;
  ++later.count;
  auto& xids = later.xids;
  xids.insert(note.withdraws ? xids.begin() : xids.end(), note.xid);
  if (xids.size() > most_numbers) xids.pop_back();
  if (now - begin < window_length) return std::nullopt;
  begin = now;
  return std::exchange(later, {});
}

std::vector<xid_line> xid_log::due(milliseconds now) {
  std::vector<xid_line> out;
  std::erase_if(windows_, [&](const auto& entry) {
    return now - entry.second.begin >= window_length && entry.second.later.count == 0;
  });
  for (auto& [card, window] : windows_) {
    if (now - window.begin < window_length) continue;
    window.begin = now;
    out.push_back(std::exchange(window.later, {}));
  }
  return out;
}

std::vector<xid_line> xid_log::rest() {
  std::vector<xid_line> out;
  for (auto& [card, window] : std::exchange(windows_, {}))
    if (window.later.count > 0) out.push_back(std::move(window.later));
  return out;
}

}  // namespace agent::cards
