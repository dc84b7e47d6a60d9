// What kube-scheduler accepts and pods with cards do not survive: the mistakes the products' manuals lead to.

#include <algorithm>

#include "scheduler_config/judge/judging.hpp"
#include "scheduler_config/managed.hpp"
#include "scheduler_config/names.hpp"
#include "scheduler_config/url.hpp"

namespace scheduler_config {
namespace {

using text::yaml::node;

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

class adviser {
 public:
  explicit adviser(judging& judging) : judging_(judging) {}

  void run() {
    const auto all = judging_.items(judging_.config.root, "extenders");
    for (const auto* entry : all) {
      for (const auto* resource : judging_.items(entry, "managedResources"))
        managed_.insert(judging_.text(resource, "name"));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto path = below("extenders", i);
      last_ = i + 1 == all.size();
      address(all[i], path);
      resources(all[i], path);
    }
    lease();
    scheduler_names();
  }

 private:
  void lease() {
    const auto* leader_election = judging_.value(judging_.config.root, "leaderElection");
    const auto* elect = judging_.value(leader_election, "leaderElect");
    if (elect && text::yaml::canonical(*elect) == "false") return;
    // Where there is no text the default counts.
    const auto named = [&](const char* key, bool right, term allowed) {
      const auto is = judging_.text(leader_election, key);
      if (!is.empty() && !right)
        judging_.say({.issue = code::lease_name_malformed,
                      .location = judging_.entry(leader_election, key)->key->location,
                      .field = below("leaderElection", key),
                      .value = is,
                      .allowed = phrase_of(allowed)});
    };
    named("resourceName", is_lease_name(judging_.text(leader_election, "resourceName")), term::lease_name);
    named("resourceNamespace", is_namespace_name(judging_.text(leader_election, "resourceNamespace")),
          term::namespace_name);
  }

  void scheduler_names() {
    const auto all = judging_.items(judging_.config.root, "profiles");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto is = judging_.text(all[i], "schedulerName");
      if (!is.empty() && !is_scheduler_name(is))
        judging_.say({.issue = code::scheduler_name_malformed,
                      .location = judging_.entry(all[i], "schedulerName")->key->location,
                      .field = below(below("profiles", i), "schedulerName"),
                      .value = is,
                      .allowed = phrase_of(term::scheduler_name)});
    }
  }

  void address(const node* node, const std::string& path) {
    const auto* position = judging_.entry(home(node, "urlPrefix"), "urlPrefix");
    if (judging_.refused.contains(node) || judging_.was_refused(node, "urlPrefix")) return;
    const auto text = position ? position->value->text : std::string();
    const auto url = split_url(text);
    const auto place = position ? position->key->location : node->location;
    const auto field = below(path, "urlPrefix");
    const auto service_proxy = url.through();
    const auto left = placeholder_in(text);
    bool whole = true;
    const auto cut = [&](code code, const char* form = nullptr) {
      whole = false;
      judging_.say({.issue = code,
                    .location = place,
                    .field = field,
                    .value = text,
                    .allowed = form ? text::phrase(form) : text::phrase()});
    };
    if (!left.empty())
      judging_.say({.issue = code::placeholder_left,
                    .location = place,
                    .field = field,
                    .value = std::string(left),
                    .hint = "https://127.0.0.1:6443"});
    else if (text.find_first_of(" \t\n") != text.npos)
      cut(code::url_folded);
    else if ((url.scheme != "http" && url.scheme != "https") || url.host.empty())
      cut(code::url_cut, "https://HOST:PORT/PATH");
    else if (const auto fault = fault_of_url(text))
      judging_.say({.issue = code::url_malformed,
                    .location = place,
                    .field = field,
                    .value = text,
                    .terms = {{"other", phrase_of(*fault)}}});
    else if (service_proxy && !service_proxy->whole)
      cut(code::url_cut, "https://HOST:PORT/api/v1/namespaces/NAMESPACE/services/NAME/proxy/PATH");
    else if (!service_proxy && is_service_name(url.host) && !is_loopback(url.host) && !judging_.scheduler.in_cluster)
      judging_.say({.issue = code::url_of_service_name,
                    .location = place,
                    .field = field,
                    .value = text,
                    .hint = std::string(url.host)});
    else if (service_proxy && !is_loopback(url.host) && position)
      judging_.say({.issue = code::single_api_server,
                    .location = place,
                    .field = field,
                    .value = std::string(url.host),
                    .hint = "https://LOAD-BALANCER:6443" + std::string(url.path)});
    if (!position || !whole) return;
    if (service_proxy) proxy(node, *position, path, *service_proxy);
    trust(node, *position, path, url);
  }

  void proxy(const node* extender, const node::entry& entry, const std::string& path,
             const extender_url::proxy& service_proxy) {
    const auto* tls = judging_.value(home(extender, "tlsConfig"), "tlsConfig");
    const auto file = judging_.text(tls, "certFile");
    finding finding{.issue = code::service_proxy_rights,
                    .location = entry.key->location,
                    .field = below(path, "urlPrefix"),
                    .other = std::string(service_proxy.ns),
                    .hint = std::string(service_proxy.service)};
    if (file.contains("apiserver-kubelet-client")) {
      finding.issue = code::kubelet_client_certificate;
      finding.location = judging_.entry(tls, "certFile")->key->location;
      finding.field = below(path, "tlsConfig.certFile");
      finding.value = file;
    } else if (file.empty() && judging_.text(tls, "certData").empty()) {
      finding.issue = code::service_proxy_without_certificate;
    }
    judging_.say(std::move(finding));
  }

  void trust(const node* extender, const node::entry& entry, const std::string& path, const extender_url& url) {
    const auto* tls = judging_.value(home(extender, "tlsConfig"), "tlsConfig");
    if (judging_.was_refused(extender, "tlsConfig") || judging_.was_refused(tls, "caData")) return;
    if (url.scheme != "https" && !judging_.flag(extender, "enableHTTPS")) return;
    const bool authority = !judging_.text(tls, "caData").empty() || !judging_.text(tls, "caFile").empty();
    if (authority) return;  // insecure together with it ends kube-scheduler
    const auto* insecure = judging_.flag(tls, "insecure") ? judging_.entry(tls, "insecure") : nullptr;
    judging_.say({.issue = code::https_without_ca,
                  .location = (insecure ? insecure : &entry)->key->location,
                  .field = below(path, insecure ? "tlsConfig.insecure" : "urlPrefix")});
  }

  /// Fields that slipped to the left margin are judged where they were meant to stand: in the last extender.
  const node* home(const node* extender, std::string_view key) const {
    return last_ && !text::yaml::find(extender, key) && text::yaml::find(judging_.config.root, key)
               ? judging_.config.root
               : extender;
  }

  void resources(const node* node, const std::string& path) {
    const auto all = judging_.items(node, "managedResources");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto item_path = below(below(path, "managedResources"), i);
      const auto* position = judging_.entry(all[i], "name");
      const auto* known = position ? managed_key_of(position->value->text) : nullptr;
      if (!known) continue;
      const auto partner = std::string(known->partner);
      if (!partner.empty() && managed_.insert(partner).second)
        judging_.say({.issue = code::managed_incomplete,
                      .location = position->key->location,
                      .field = below(path, "managedResources"),
                      .value = std::string(known->key),
                      .other = partner});
      if (!known->offered && !judging_.flag(all[i], "ignoredByScheduler") &&
          !judging_.was_refused(all[i], "ignoredByScheduler"))
        judging_.say({.issue = code::not_offered_not_ignored,
                      .location = position->key->location,
                      .field = below(item_path, "name"),
                      .value = std::string(known->key)});
    }
  }

  judging& judging_;
  std::set<std::string> managed_;  ///< by any extender
  bool last_ = false;
};

}  // namespace

void advise(judging& judging) { adviser(judging).run(); }

bool asks_about_cards(const document& document) {
  const server any;
  const judging judging{.config = document, .scheduler = any, .out = {}, .refused = {}};
  return std::ranges::any_of(judging.items(document.root, "extenders"), [&](const node* extender) {
    const auto managed = judging.items(extender, "managedResources");
    const auto of_cards = [&](const node* resource) {
      return managed_key_of(judging.text(resource, "name")) != nullptr;
    };
    return managed.empty() || std::ranges::any_of(managed, of_cards);
  });
}

findings lost_between(const document& first, const document& second, std::string_view name) {
  const server any;
  const judging a{.config = first, .scheduler = any, .out = {}, .refused = {}};
  const judging b{.config = second, .scheduler = any, .out = {}, .refused = {}};
  std::set<std::string> kept;  // addresses and resources
  for (const auto* item : b.items(second.root, "extenders")) {
    kept.insert(b.text(item, "urlPrefix"));
    for (const auto* resource : b.items(item, "managedResources")) kept.insert(b.text(resource, "name"));
  }
  findings out;
  const auto all = a.items(first.root, "extenders");
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string resources;
    bool there = kept.contains(a.text(all[i], "urlPrefix"));
    for (const auto* resource : a.items(all[i], "managedResources")) {
      const auto key = a.text(resource, "name");
      there = there || kept.contains(key);
      resources += (resources.empty() ? "" : ", ") + key;
    }
    if (!there)
      out.push_back({.issue = code::extender_lost,
                     .location = all[i]->location,
                     .field = below("extenders", i),
                     .value = resources.empty() ? "*" : resources,
                     .other = std::string(name)});
  }
  return out;
}

}  // namespace scheduler_config
