#pragma once
// What the verbs that look at a cluster share: how to reach it, lists of projections page by page, and the declarations
// that are in it.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/event.hpp"
#include "kube/page_walk.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/task.hpp"
#include "kube/transport.hpp"
#include "text/phrase.hpp"

namespace CLI {
class App;
}

namespace cli {

struct cluster_options {
  std::string kubeconfig, context;
  std::string person;               ///< empty: the kubeconfig's own user
  std::vector<std::string> groups;  ///< of `person`
  std::string deadline;             ///< of a request: "10s"; empty or 0: as long as it takes, at most 30 s
};
/// --kubeconfig and --context; they write into `options`, which must outlive parsing.
void add_kubeconfig_options(CLI::App& verb, cluster_options& options);
/// These, and --as, --as-group and --request-timeout as kubectl has them.
void add_cluster_options(CLI::App& verb, cluster_options& options);

/// What -n and -A say of a verb that lists what lies in namespaces: -n that one; -A, or neither, all. Who named none
/// and may not see all gets that of the context, with a line that says so.
struct namespace_scope {
  std::string ns;           ///< empty: all
  bool everywhere = false;  ///< -A

  bool is_open() const { return ns.empty() && !everywhere; }
};
/// -n and -A; as kubectl has it, -A counts where both are there. `scope` must outlive parsing.
void add_namespace_scope(CLI::App& verb, namespace_scope& scope, std::string help);

/// That a scope which is open came down to `ns`.
text::phrase own_namespace(const std::string& ns);

/// The namespace of the context, as kubectl takes it; "default" where there is no configuration.
std::string namespace_of(const cluster_options& options);

/// With its words, where it is a fault of the kubeconfig or of what that names (errc::config).
struct cluster_error : kube::error {
  text::phrase words;

  explicit cluster_error(kube::error error, text::phrase phrase = {})
      : kube::error(std::move(error)), words(std::move(phrase)) {}
};
using cluster_answer = std::expected<void, cluster_error>;

/// Runs `work` to its end on a loop of its own, over a connection to the cluster. errc::config where there is none.
cluster_answer ask_cluster(const cluster_options& options,
                           const std::function<kube::task<void>(kube::transport&)>& work);

/// One request, sent again where the server says when (Retry-After of 429 and 5xx, at most ten times). Answers of 400
/// and more are errors that begin with `operation`.
kube::task<kube::response> send_patiently(kube::transport& transport, std::string operation, kube::request request);

struct metadata_only {};

/// Every object of every page, decoded. errc::decode: one cannot be. With `metadata_only` the server sends no
/// more than that.
template <kube::projection T>
kube::task<void> list_each(kube::transport& transport, kube::list_options options, std::function<void(T)> each,
                           std::optional<metadata_only> only = std::nullopt) {
  options.accept = T::wire;
  const std::string operation = "list " + std::string(T::of().plural);
  kube::page_walk pages(operation);
  for (bool is_open = true; is_open;) {
    auto page = kube::list_page(T::of(), options);
    if (only) page.accept += ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    auto answer = co_await send_patiently(transport, operation, std::move(page));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    std::optional<kube::error> unreadable;
    const auto read = kube::read_list(answer->body, T::wire, [&](std::string_view bytes) {
      if (auto item = T::decode(bytes))
        each(std::move(*item));
      else if (!unreadable)
        unreadable = std::move(item.error());
    });
    if (!read) co_return std::unexpected(read.error());
    if (unreadable)
      co_return std::unexpected(
          kube::error{kube::errc::decode,
                      0,
                      operation + ": the server sent an object that cannot be read: " + unreadable->message,
                      {}});
    const auto more = pages.next(read->next, options);
    if (!more) co_return std::unexpected(more.error());
    is_open = *more;
  }
  co_return kube::result<void>();
}

/// The declarations and device configurations of a namespace, and what they are judged with.
struct declared_resources {
  std::vector<kube::config_map> config_maps;  ///< in the order of their keys
  /// Null: we may not see them, so names that do not exist are not reported.
  std::optional<std::set<std::string, std::less<>>> runtime_classes;
};
kube::task<declared_resources> read_declared(kube::transport& transport, std::string ns);

}  // namespace cli
