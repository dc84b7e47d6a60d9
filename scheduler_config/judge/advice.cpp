// What kube-scheduler accepts and pods with cards do not survive: the mistakes the products' manuals lead to.

#include <algorithm>

#include "scheduler_config/judge/judging.hpp"
#include "scheduler_config/managed.hpp"
#include "scheduler_config/names.hpp"
#include "scheduler_config/url.hpp"

namespace reconcilers::scheduler_config {
namespace {

using yaml::node;

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }
bool is_service_name(std::string_view host) { return host.ends_with(".svc") || host.contains(".svc."); }

class adviser {
 public:
  explicit adviser(judging& in) : in_(in) {}

  void run() {
    const auto all = in_.items(in_.of.root, "extenders");
    for (const auto* one : all) {
      for (const auto* resource : in_.items(one, "managedResources")) managed_.insert(in_.text(resource, "name"));
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
    const auto* of = in_.value(in_.of.root, "leaderElection");
    const auto* elect = in_.value(of, "leaderElect");
    if (elect && yaml::canonical(*elect) == "false") return;
    // Where there is no text the default counts.
    const auto named = [&](const char* key, bool right, std::string_view allowed) {
      const auto is = in_.text(of, key);
      if (!is.empty() && !right)
        in_.say({.what = code::lease_name_malformed,
                 .at = in_.entry(of, key)->key->at,
                 .field = below("leaderElection", key),
                 .value = is,
                 .allowed = std::string(allowed)});
    };
    named("resourceName", is_lease_name(in_.text(of, "resourceName")), a_lease_name);
    named("resourceNamespace", is_namespace_name(in_.text(of, "resourceNamespace")), a_namespace_name);
  }

  void scheduler_names() {
    const auto all = in_.items(in_.of.root, "profiles");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto is = in_.text(all[i], "schedulerName");
      if (!is.empty() && !is_scheduler_name(is))
        in_.say({.what = code::scheduler_name_malformed,
                 .at = in_.entry(all[i], "schedulerName")->key->at,
                 .field = below(below("profiles", i), "schedulerName"),
                 .value = is,
                 .allowed = std::string(a_scheduler_name)});
    }
  }

  void address(const node* of, const std::string& path) {
    const auto* at = in_.entry(home(of, "urlPrefix"), "urlPrefix");
    if (in_.refused.contains(of) || in_.was_refused(of, "urlPrefix")) return;
    const auto text = at ? at->value->text : std::string();
    const auto url = split_url(text);
    const auto place = at ? at->key->at : of->at;
    const auto field = below(path, "urlPrefix");
    const auto by = url.through();
    const auto left = placeholder_in(text);
    bool whole = true;
    const auto cut = [&](code what, std::string allowed = {}) {
      whole = false;
      in_.say({.what = what, .at = place, .field = field, .value = text, .allowed = std::move(allowed)});
    };
    if (!left.empty())
      in_.say({.what = code::placeholder_left,
               .at = place,
               .field = field,
               .value = std::string(left),
               .hint = "https://127.0.0.1:6443"});
    else if (text.find_first_of(" \t\n") != text.npos)
      cut(code::url_folded);
    else if ((url.scheme != "http" && url.scheme != "https") || url.host.empty())
      cut(code::url_cut, "https://HOST:PORT/PATH");
    else if (const auto fault = fault_of_url(text); !fault.empty())
      in_.say({.what = code::url_malformed, .at = place, .field = field, .value = text, .other = std::string(fault)});
    else if (by && !by->whole)
      cut(code::url_cut, "https://HOST:PORT/api/v1/namespaces/NAMESPACE/services/NAME/proxy/PATH");
    else if (!by && is_service_name(url.host) && !in_.on.in_cluster)
      in_.say({.what = code::url_of_service_name,
               .at = place,
               .field = field,
               .value = text,
               .hint = std::string(url.host)});
    else if (by && !is_loopback(url.host) && at)
      in_.say({.what = code::single_api_server,
               .at = place,
               .field = field,
               .value = std::string(url.host),
               .hint = "https://LOAD-BALANCER:6443" + std::string(url.path)});
    if (!at || !whole) return;
    if (by) proxy(of, *at, path, *by);
    trust(of, *at, path, url);
  }

  void proxy(const node* of, const node::entry& at, const std::string& path, const extender_url::proxy& by) {
    const auto* tls = in_.value(home(of, "tlsConfig"), "tlsConfig");
    const auto file = in_.text(tls, "certFile");
    finding what{.what = code::service_proxy_rights,
                 .at = at.key->at,
                 .field = below(path, "urlPrefix"),
                 .other = std::string(by.ns),
                 .hint = std::string(by.service)};
    if (file.contains("apiserver-kubelet-client")) {
      what.what = code::kubelet_client_certificate;
      what.at = in_.entry(tls, "certFile")->key->at;
      what.field = below(path, "tlsConfig.certFile");
      what.value = file;
    } else if (file.empty() && in_.text(tls, "certData").empty()) {
      what.what = code::service_proxy_without_certificate;
    }
    in_.say(std::move(what));
  }

  void trust(const node* of, const node::entry& at, const std::string& path, const extender_url& url) {
    const auto* tls = in_.value(home(of, "tlsConfig"), "tlsConfig");
    if (in_.was_refused(of, "tlsConfig") || in_.was_refused(tls, "caData")) return;
    if (url.scheme != "https" && !in_.flag(of, "enableHTTPS")) return;
    const bool authority = !in_.text(tls, "caData").empty() || !in_.text(tls, "caFile").empty();
    if (authority) return;  // insecure beside it ends kube-scheduler
    const auto* insecure = in_.flag(tls, "insecure") ? in_.entry(tls, "insecure") : nullptr;
    in_.say({.what = code::https_without_ca,
             .at = (insecure ? insecure : &at)->key->at,
             .field = below(path, insecure ? "tlsConfig.insecure" : "urlPrefix")});
  }

  /// Fields that slipped to the left margin are judged where they were meant to stand: in the last extender.
  const node* home(const node* of, std::string_view key) const {
    return last_ && !yaml::find(of, key) && yaml::find(in_.of.root, key) ? in_.of.root : of;
  }

  void resources(const node* of, const std::string& path) {
    const auto all = in_.items(of, "managedResources");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto where = below(below(path, "managedResources"), i);
      const auto* at = in_.entry(all[i], "name");
      const auto* known = at ? managed_key_of(at->value->text) : nullptr;
      if (!known) continue;
      const auto partner = std::string(known->partner);
      if (!partner.empty() && managed_.insert(partner).second)
        in_.say({.what = code::managed_incomplete,
                 .at = at->key->at,
                 .field = below(path, "managedResources"),
                 .value = std::string(known->key),
                 .other = partner});
      if (!known->offered && !in_.flag(all[i], "ignoredByScheduler") && !in_.was_refused(all[i], "ignoredByScheduler"))
        in_.say({.what = code::not_offered_not_ignored,
                 .at = at->key->at,
                 .field = below(where, "name"),
                 .value = std::string(known->key)});
    }
  }

  judging& in_;
  std::set<std::string> managed_;  ///< by any extender
  bool last_ = false;
};

}  // namespace

void advise(judging& in) { adviser(in).run(); }

bool asks_about_cards(const document& of) {
  const server any;
  const judging in{.of = of, .on = any, .out = {}, .refused = {}};
  return std::ranges::any_of(in.items(of.root, "extenders"), [&](const node* one) {
    const auto managed = in.items(one, "managedResources");
    const auto of_cards = [&](const node* resource) { return managed_key_of(in.text(resource, "name")) != nullptr; };
    return managed.empty() || std::ranges::any_of(managed, of_cards);
  });
}

findings lost_between(const document& first, const document& second, std::string_view name) {
  const server any;
  const judging a{.of = first, .on = any, .out = {}, .refused = {}};
  const judging b{.of = second, .on = any, .out = {}, .refused = {}};
  std::set<std::string> kept;  // addresses and resources
  for (const auto* one : b.items(second.root, "extenders")) {
    kept.insert(b.text(one, "urlPrefix"));
    for (const auto* resource : b.items(one, "managedResources")) kept.insert(b.text(resource, "name"));
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
      out.push_back({.what = code::extender_lost,
                     .at = all[i]->at,
                     .field = below("extenders", i),
                     .value = resources.empty() ? "*" : resources,
                     .other = std::string(name)});
  }
  return out;
}

}  // namespace reconcilers::scheduler_config
