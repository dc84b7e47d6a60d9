#pragma once
// A Prometheus that verbs and the console ask: how to reach it, and what its answers hold. Without an address there is
// none, and who asks for its numbers says so.

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "kube/task.hpp"
#include "kube/transport.hpp"
#include "text/phrase.hpp"

namespace CLI {
class App;
}

namespace cli {

struct prometheus_options {
  std::string url, token_file, username_file, password_file, ca_file;
};
/// --prometheus-url and the options --prometheus-*-file; `purpose` is the help of the first. They write into `options`,
/// which must outlive parsing.
void add_prometheus_options(CLI::App& verb, prometheus_options& options, const std::string& purpose);

/// What is wrong with the options, in one line; empty: nothing.
text::phrase problem_of(const prometheus_options& options);
/// A connection to it. An answer has 15 seconds and `most_bytes`.
std::unique_ptr<kube::transport> connection_to(boost::asio::any_io_executor executor, const prometheus_options& options,
                                               std::size_t most_bytes = std::size_t{16} << 20);

/// The body of a good answer; `target` is path and query. Any other status is errc::server.
kube::task<std::string> ask_prometheus(kube::transport& prometheus, std::string target);
/// The same on a loop and a connection of its own. The error is one line that names the address.
kube::result<std::string> answer_of(const prometheus_options& options, const std::string& target);

/// Path and query for the value of `query` now.
std::string instant_target(std::string_view query);

/// An answer of Prometheus as JSON; discarded: it is none. An answer that is nested deeper than Prometheus's own is
/// none, because it would take a hundred times its size.
nlohmann::json answer_in(std::string_view body);
/// The list of series in an answer of Prometheus; null: it is no such answer.
const nlohmann::json* series_in(const nlohmann::json& answer);

/// A label of a series; empty: it has none of that name.
std::string label_of(const nlohmann::json& series, const char* name);

}  // namespace cli
