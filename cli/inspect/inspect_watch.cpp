#include "cli/inspect/inspect_watch.hpp"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <ostream>
#include <set>
#include <sstream>
#include <utility>

#include "cli/cluster/refusal.hpp"
#include "cli/output/answer.hpp"
#include "cli/views/view_reply.hpp"
#include "controller/sleep.hpp"

namespace cli {
namespace {

namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds shortest_pause{2'000};
/// All nodes and pods are read each time: of a large cluster that takes longer, and it is then asked less often.
constexpr int pauses_per_read = 4;
/// Home, clear, and clear what has scrolled away.
constexpr std::string_view cleared = "\033[H\033[2J\033[3J";

/// For a person who may not read nodes and pods: the table as the console's server makes it. Where the rows alone are
/// wanted, lines that were not there before.
class view_watch {
 public:
  explicit view_watch(bool redraws) : redraws_(redraws) {}

  std::string changes(const std::string& table) {
    if (table == last_) return {};
    std::string out = redraws_ ? std::string(cleared) + table : std::string();
    std::set<std::string> now;
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      if (!redraws_ && !known_.contains(line)) out += line + "\n";
      now.insert(std::move(line));
    }
    known_ = std::move(now), last_ = table;
    return out;
  }

 private:
  bool redraws_;
  std::string last_;
  std::set<std::string> known_;
};

/// @param refused the error where that server does not answer the first time
kube::task<void> keep_asking(kube::transport& transport, const look_options& options, bool redraws, kube::error refused,
                             std::ostream& out, std::ostream& err) {
  const auto locale = bilingual(options.language).locale();
  view_watch watch(redraws);
  for (bool is_first = true, has_answer = true;; is_first = false) {
    auto question = nodes_question(options);
    const auto outcome = co_await ask_view(transport, std::move(question), options);
    const bool answers = outcome && outcome->reply && outcome->reply->code == 0;
    if (!answers && is_first) co_return std::unexpected(std::move(refused));
    if (is_first) failed({"transport.views"}, locale, err);
    if (answers) out << watch.changes(outcome->reply->text) << std::flush;
    if (!answers && has_answer) failed({"transport.again", {{"problem", phrase_without_grants(refused)}}}, locale, err);
    has_answer = answers;
    if (!out) break;
    const bool slept = co_await controller::sleep_for(shortest_pause);
    if (!slept) break;
  }
  co_return kube::result<void>();
}

kube::task<void> keep_looking(kube::transport& transport, const look_options& options, node_watch& watch, bool redraws,
                              std::ostream& out, std::ostream& err) {
  bool has_read = false;
  std::string last_problem;
  for (;;) {
    const auto begin = clock::now();
    picture picture;
    const auto found = co_await read_picture(transport, node_parts(options), picture);
    if (!found && !has_read && found.error().code == kube::errc::forbidden)
      co_return co_await keep_asking(transport, options, redraws, found.error(), out, err);
    if (!found && !has_read) co_return std::unexpected(found.error());
    if (found) {
      has_read = true;
      if (sees_ledger(picture)) picture.finish();
      last_problem.clear();
      out << watch.changes(node_rows(fleet(picture), options.only, node_selector(options))) << std::flush;
    } else if (found.error().message != last_problem) {
      last_problem = found.error().message;
      failed({"transport.again", {{"problem", phrase_of(found.error())}}}, bilingual(options.language).locale(), err);
    }
    if (!out) break;
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
    const bool slept = co_await controller::sleep_for(std::max(shortest_pause, pauses_per_read * took));
    if (!slept) break;
  }
  co_return kube::result<void>();
}

kube::task<void> look_until_signal(kube::transport& transport, const look_options& options, node_watch& watch,
                                   bool redraws, std::ostream& out, std::ostream& err) {
  using namespace asio::experimental::awaitable_operators;
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  auto looking = keep_looking(transport, options, watch, redraws, out, err);
  auto ended = co_await (std::move(looking) || signals.async_wait(asio::use_awaitable));
  if (ended.index() == 0) co_return std::get<0>(std::move(ended));
  co_return kube::result<void>();
}

}  // namespace

std::string node_watch::text_of(const std::vector<node_row>& rows) const {
  std::ostringstream out;
  print(rows, options_, out);
  return out.str();
}

std::string node_watch::changes(const std::vector<node_row>& rows) {
  if (redraws_) {
    auto screen = text_of(rows);
    if (!is_first_ && screen == screen_) return {};
    is_first_ = false;
    screen_ = std::move(screen);
    return std::string(cleared) + screen_;
  }
  std::map<std::string, std::string> now;
  std::vector<node_row> changed;
  for (const auto& row : rows) {
    auto line = text_of({row});  // its width depends on this row alone
    const auto before = known_.find(row.name);
    if (before == known_.end() || before->second != line) changed.push_back(row);
    now[row.name] = std::move(line);
  }
  for (const auto& [name, line] : known_) {
    if (now.contains(name)) continue;
    node_row gone;
    gone.name = name;
    gone.reason = "Gone";
    changed.push_back(std::move(gone));
  }
  const bool needs_header = known_.empty() && (is_first_ || !rows.empty());
  is_first_ = false;
  known_ = std::move(now);
  if (needs_header) return text_of(rows);
  if (changed.empty()) return {};
  const auto text = text_of(changed);
  return text.substr(text.find('\n') + 1);
}

int run_watch_nodes(const look_options& options, bool redraws, std::ostream& out, std::ostream& err) {
  node_watch watch(options, redraws);
  const auto done = ask_cluster(options.cluster, [&](kube::transport& transport) {
    return look_until_signal(transport, options, watch, redraws, out, err);
  });
  return done ? 0 : failed(phrase_of(done.error()), bilingual(options.language).locale(), err);
}

}  // namespace cli
