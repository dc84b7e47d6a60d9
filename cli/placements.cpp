#include "cli/placements.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/manifest.hpp"
#include "cli/snapshot.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "cli/yaml.hpp"
#include "quota/explain.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/protocol.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/gpu_quota.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using json = nlohmann::ordered_json;

constexpr std::size_t most_pods = 10'000;

template <class T>
kube::task<void> read_into(kube::transport& over, controller::store<T>& into, kube::list_options what = {}) {
  into.begin();
  auto done = co_await list_each<T>(over, std::move(what), [&](T one) { into.put(std::move(one)); });
  // Custom resources of a cluster without the operator: nothing is declared there.
  if (!done && done.error().code != kube::errc::not_found) co_return std::unexpected(std::move(done.error()));
  into.commit();
  co_return kube::result<void>();
}

/// Few people may read kube-system: to them such limits are told when their pod is refused.
kube::task<void> read_old_quotas(kube::transport& over, controller::store<kube::config_map>& into) {
  kube::list_options what;
  what.ns = reconcilers::gpu_quota_namespace;
  what.field_selector = "metadata.name=" + std::string(reconcilers::gpu_quota_name);
  auto done = co_await read_into(over, into, std::move(what));
  if (!done && done.error().code != kube::errc::forbidden) co_return std::unexpected(std::move(done.error()));
  co_return kube::result<void>();
}

std::string dump(const json& of) { return of.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

struct row {
  std::string container, card, amount;
};
std::vector<row> rows_of(const quota::holding& held, const ext::asked& by) {
  std::vector<row> out;
  for (const auto& one : held.grants) {
    const auto name = one.container < by.names().size() ? by.names()[one.container]->name : "?";
    const auto amount = one.whole ? std::string("whole card")
                                  : std::to_string(one.cores) + " cores, " + std::to_string(one.memory_mib) + " MiB";
    out.push_back({name, one.card, amount});
  }
  for (const auto& one : held.counts) out.push_back({"", one.key, std::to_string(one.amount)});
  return out;
}
json json_of(const quota::holding& held, const ext::asked& by) {
  json out = json::array();
  for (const auto& one : held.grants)
    out.push_back({{"container", one.container < by.names().size() ? by.names()[one.container]->name : ""},
                   {"card", one.card},
                   {"whole", one.whole},
                   {"cores", one.cores},
                   {"memoryMiB", one.memory_mib}});
  for (const auto& one : held.counts) out.push_back({{"key", one.key}, {"count", one.amount}});
  return out;
}

json json_of(const quota::explanation& why, std::span<const quota::node_view> nodes, const ext::asked& by) {
  json out{{"nodes", why.nodes}, {"fitting", why.fitting}, {"text", ext::text_of(why, nodes, by)}};
  out["causes"] = json::array();
  for (const auto& one : why.causes) {
    json cause{{"reason", quota::text_of(one.why)}, {"nodes", one.nodes}};
    if (one.container >= 0 && static_cast<std::size_t>(one.container) < by.names().size())
      cause["container"] = by.names()[static_cast<std::size_t>(one.container)]->name;
    if (!one.key.empty()) cause["key"] = one.key;
    out["causes"].push_back(std::move(cause));
  }
  out["nearest"] = why.nearest ? json(nodes[*why.nearest].what->name) : json();
  out["changeOfPod"] = why.of_pod ? json(ext::by_name(quota::text_of(*why.of_pod, nodes), by)) : json();
  out["changeOfNode"] = why.of_node ? json(quota::text_of(*why.of_node, nodes)) : json();
  return out;
}

void print(const quota::explanation& why, std::span<const quota::node_view> nodes, const ext::asked& by,
           std::ostream& to) {
  table rows({"NODES", "REASON", "OF"});
  for (const auto& one : why.causes) {
    std::string of(one.key);
    if (of.empty() && one.container >= 0 && static_cast<std::size_t>(one.container) < by.names().size())
      of = "container " + by.names()[static_cast<std::size_t>(one.container)]->name;
    rows.add({std::to_string(one.nodes), std::string(quota::text_of(one.why)), of});
  }
  rows.print(to);
  if (why.nearest) to << "Nearest: node " << nodes[*why.nearest].what->name << "\n";
  if (why.of_pod) to << "Smallest change of the pod: " << ext::by_name(quota::text_of(*why.of_pod, nodes), by) << "\n";
  if (why.of_node) to << "Smallest change of a node: " << quota::text_of(*why.of_node, nodes) << "\n";
  if (!why.of_pod && !why.of_node) to << "No single change of the pod or of a node is enough.\n";
}

/// Two names from "NAMESPACE/NAME"; empty where it is not that.
kube::object_key key_of(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return {"default", text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

int explain_bound(const kube::pod& pod, const placements& in, const std::string& output, std::ostream& out) {
  const ext::asked by(pod, in.book->keys());
  const auto* held = in.book->book().find(pod.id.to_string());
  std::string_view from = "nothing of ours";
  if (held) {
    const auto view = in.book->book().view(pod.node_name);
    if (view) from = ext::to_string(ext::held_by(pod, *view, by).from);
  }
  if (output == "json") {
    json doc{{"pod", pod.key.to_string()}, {"node", pod.node_name}, {"waits", false}, {"source", from}};
    doc["holds"] = held ? json_of(held->held, by) : json::array();
    out << dump(doc);
    return 0;
  }
  out << "Pod " << pod.key.to_string() << " is on node " << pod.node_name;
  if (!held) {
    out << " and holds nothing that is managed here.\n";
    return 0;
  }
  out << (from == "guessed" ? " and was bound by somebody else; which cards it has is a guess:\n" : " and holds:\n");
  table rows({"CONTAINER", "CARD", "AMOUNT"});
  for (const auto& one : rows_of(held->held, by)) rows.add({one.container, one.card, one.amount});
  rows.print(out);
  return 0;
}

/// The first amount of an extended resource that is none: "containers[0].resources.limits: nvidia.com/gpu is abc; ...".
std::string wrong_amount(const nlohmann::json& spec) {
  for (const auto* list : {"initContainers", "containers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      const auto limits = spec[list][i].is_object()
                              ? spec[list][i].value("/resources/limits"_json_pointer, nlohmann::json::object())
                              : nlohmann::json::object();
      if (!limits.is_object()) continue;
      for (const auto& [key, value] : limits.items()) {
        if (!kube::is_extended_resource(key)) continue;
        const auto text = value.is_string() ? value.get<std::string>() : value.dump();
        const auto amount = kube::parse_quantity(text);
        const bool whole = amount && *amount >= 0 && text.find_first_of(".mun-") == std::string::npos;
        if (!whole)
          return std::string(list) + "[" + std::to_string(i) + "].resources.limits: " + key + " is " +
                 text.substr(0, 40) + "; allowed is a whole number from 0";
      }
    }
  }
  return {};
}

/// The pods an object makes, each by its own name. False: its pod cannot be read, `problem` says why.
bool add_pods(const manifest& of, std::vector<kube::pod>& to, std::string& problem) {
  const auto* spec = pod_spec_of(of);
  if (!spec) return true;
  const auto read = yaml::to_json(*spec);
  if (!read) {
    problem = of.key.to_string() + ": the pod is too large";
    return false;
  }
  nlohmann::json annotations = nlohmann::json::object();
  const bool bare = of.kind == "Pod";
  const auto* meta = yaml::find(of.root, "metadata");
  if (!bare) meta = yaml::find(yaml::find(yaml::find(of.root, "spec"), "template"), "metadata");
  if (const auto* map = yaml::find(meta, "annotations"); map && map->mapping())
    for (const auto& entry : map->entries) annotations[entry.key->text] = yaml::canonical(*entry.value);
  if (auto wrong = wrong_amount(*read); !wrong.empty()) {
    problem = of.kind + " " + of.key.to_string() + ": " + wrong;
    return false;
  }
  std::int64_t count = 1;
  const auto* workload = yaml::find(of.root, "spec");
  for (const auto* key : {"replicas", "parallelism", "completions"}) {
    const auto text = bare ? std::string_view() : yaml::text_at(workload, key);
    if (text.empty()) continue;
    std::int64_t said = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), said);
    if (failed != std::errc() || end != text.data() + text.size() || said < 0 ||
        said > static_cast<std::int64_t>(most_pods)) {
      problem = of.kind + " " + of.key.to_string() + ": spec." + key + " is " + std::string(text.substr(0, 40)) +
                "; allowed is a whole number from 0 to " + std::to_string(most_pods);
      return false;
    }
    // A Job runs no more at once than are to be completed.
    count = std::string_view(key) == "completions" ? std::min(count, said) : said;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto name = count == 1 ? of.key.name : of.key.name + "-" + std::to_string(i);
    const nlohmann::json document{
        {"metadata",
         {{"name", name}, {"namespace", of.key.ns.empty() ? "default" : of.key.ns}, {"annotations", annotations}}},
        {"spec", *read}};
    auto pod = ext::pod_of(document.dump());
    if (!pod) {
      problem = pod.error().what;
      return false;
    }
    pod->id = kube::uid::parse("simulated " + pod->key.to_string());
    pod->node_name.clear();
    if (to.size() == most_pods) {
      problem = "more than " + std::to_string(most_pods) + " pods; give fewer";
      return false;
    }
    to.push_back(std::move(*pod));
  }
  return true;
}

constexpr std::string_view pod_example = R"(Examples:
  $ quartermaster explain pod lab/trainer
  $ quartermaster explain pod lab/trainer -o json
  $ quartermaster inspect --save now.json && quartermaster explain pod lab/trainer --snapshot now.json

Only what cards and declared keys say is judged here; taints, CPU and affinity are the scheduler's (kubectl describe pod).
Exit codes: 0 it is bound, or would fit; 1 there is no such pod, or the cluster cannot be read; 2 wrong usage; 3 it fits nowhere)";

constexpr std::string_view simulate_example = R"(Examples:
  $ quartermaster simulate -f pods.yaml
  $ kubectl get pods -n lab -o yaml | quartermaster simulate -f -
  $ quartermaster inspect --save now.json && quartermaster simulate -f pods.yaml --snapshot now.json

Pods are tried in the order of the file, each on what the earlier ones left; workloads (Deployment, Job, ...) count as their replicas, a DaemonSet as one pod.
Exit codes: 0 all fit, 1 the cluster cannot be read, 2 wrong usage or file, 3 some do not fit)";

}  // namespace

void placements::finish() {
  book = std::make_unique<ext::account>(ext::account::stores{pods, nodes, policies, rules, quotas, old_quotas, cards},
                                        metrics);
}

kube::task<void> read_placements(kube::transport& over, placements& into) {
  for (auto done : {co_await read_into(over, into.rules), co_await read_into(over, into.policies),
                    co_await read_into(over, into.quotas), co_await read_old_quotas(over, into.old_quotas),
                    co_await read_into(over, into.cards), co_await read_into(over, into.nodes),
                    co_await read_into(over, into.pods)})
    if (!done) co_return std::unexpected(std::move(done.error()));
  into.finish();
  co_return kube::result<void>();
}

kube::result<void> gather(const cluster_options& from, const std::string& snapshot, placements& into) {
  if (snapshot.empty()) return ask_cluster(from, [&](kube::transport& over) { return read_placements(over, into); });
  const auto wrong = [&](const std::string& why) {
    return std::unexpected(kube::error{kube::errc::config, 0, snapshot + ": " + why, std::nullopt});
  };
  std::ifstream file(snapshot, std::ios::binary);
  if (!file) return wrong(std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (const auto read = read_snapshot(text, into); !read) return wrong(read.error());
  return {};
}

namespace {

/// The commands that show what limits a namespace.
std::string where_limits_are(const placements& in, const std::string& ns) {
  std::string out;
  if (std::ranges::any_of(in.quotas.all(), [&](const auto& one) { return one.key.ns == ns; }))
    out += "kubectl get acceleratorquota -n " + ns + "\n";
  for (const auto& one : in.old_quotas.all())
    if (one.data.value_or(reconcilers::gpu_quota_key, "").contains("\"" + ns + "\""))
      out += "kubectl get configmap -n " + one.key.ns + " " + one.key.name + " -o yaml\n";
  return out;
}

/// What cannot be read does not count here; the operator goes on with what it read before.
void say_unread(const placements& in, std::ostream& err) {
  if (!in.book->trouble().empty())
    err << "quartermaster: kube-system/gpuquota does not count: " << in.book->trouble() << "\n";
}

}  // namespace

int explain_pod(const placements& in, const std::string& name, const std::string& output, std::ostream& out,
                std::ostream& err) {
  say_unread(in, err);
  const auto key = key_of(name);
  const auto* pod = in.pods.find(key);
  if (!pod) {
    err << "quartermaster: there is no pod " << key.to_string() << "; give it as NAMESPACE/NAME\n";
    return 1;
  }
  if (!pod->node_name.empty()) return explain_bound(*pod, in, output, out);
  const ext::asked by(*pod, in.book->keys());
  if (by.nothing()) {
    if (output == "json")
      out << dump({{"pod", key.to_string()}, {"waits", false}, {"source", "nothing of ours"}});
    else
      out << "Pod " << key.to_string()
          << " asks for no card and for no declared key; the scheduler's own events say why it waits: "
          << "kubectl describe pod -n " << key.ns << " " << key.name << "\n";
    return 0;
  }
  const auto nodes = ext::candidates(in.book->book(), in.nodes);
  const auto why = quota::explain(by.containers(), nodes, by.only());
  const auto limit = ext::limit_of(*in.book, *pod, by, nodes);
  const int rc = why.fitting > 0 && !limit ? 0 : 3;
  if (output == "json") {
    json doc{{"pod", key.to_string()}, {"node", nullptr}, {"waits", true}};
    doc["explanation"] = json_of(why, nodes, by);
    doc["quota"] = limit ? json(quota::text_of(*limit)) : json();
    out << dump(doc);
    return rc;
  }
  out << "Pod " << key.to_string() << " waits: its cards fit on " << why.fitting << " of " << why.nodes << " nodes.\n";
  if (limit) {
    out << "Its namespace's quota refuses it: " << quota::text_of(*limit) << "\n" << where_limits_are(in, key.ns);
    return rc;
  }
  if (why.fitting > 0) {
    out << "Cards are not what it waits for: kubectl describe pod -n " << key.ns << " " << key.name << "\n";
    return rc;
  }
  print(why, nodes, by, out);
  return rc;
}

namespace {

/// Where the pod would lie, and booked there for those after it; or why nowhere.
struct seat {
  std::string node;
  quota::holding held;
  std::string why;
};
seat take_seat(placements& in, const kube::pod& pod, const ext::asked& by) {
  auto& book = *in.book;
  const auto nodes = ext::candidates(book.book(), in.nodes);
  std::vector<quota::shortfall> found(nodes.size());
  std::vector<std::uint8_t> scores(nodes.size());
  quota::filter(by.containers(), nodes, found, by.only());
  quota::score(by.containers(), nodes, quota::policy::binpack, scores, by.only());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (found[i].fits()) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(-int{scores[i]}, i); });
  std::optional<quota::exceeded> limit;
  for (const auto i : order) {
    auto here = book.try_on(pod, by, nodes[i].what->name);
    if (here.limit && !limit) limit = std::move(here.limit);
    if (!here.held || book.assume(pod, *here.held, {}) != quota::booked::done) continue;
    auto node = here.held->node;
    return {std::move(node), std::move(*here.held), {}};
  }
  if (limit) return {{}, {}, quota::text_of(*limit)};
  return {{}, {}, ext::text_of(quota::explain(by.containers(), nodes, by.only()), nodes, by)};
}

}  // namespace

int simulate(placements& in, std::span<const kube::pod> pods, const std::string& output, std::ostream& out) {
  json doc{{"pods", json::array()}};
  table rows({"POD", "NODE", "CARDS", "WHY"});
  std::size_t fitting = 0;
  for (const auto& pod : pods) {
    const auto name = pod.key.to_string();
    const ext::asked by(pod, in.book->keys());
    if (by.nothing()) {
      ++fitting;
      doc["pods"].push_back({{"pod", name}, {"node", nullptr}, {"asks", false}});
      rows.add({name, "any", "", "asks for no card and no declared key"});
      continue;
    }
    const auto seat = take_seat(in, pod, by);
    const bool fits = seat.why.empty();
    fitting += fits ? 1 : 0;
    std::string cards;
    for (const auto& held : rows_of(seat.held, by)) cards += (cards.empty() ? "" : ", ") + held.card;
    json entry{{"pod", name}, {"node", fits ? json(seat.node) : json()}, {"asks", true}};
    if (fits)
      entry["holds"] = json_of(seat.held, by);
    else
      entry["why"] = seat.why;
    doc["pods"].push_back(std::move(entry));
    rows.add({name, fits ? seat.node : "-", cards, seat.why});
  }
  doc["fitting"] = fitting;
  doc["of"] = pods.size();
  if (output == "json") {
    out << dump(doc);
  } else {
    rows.print(out);
    out << fitting << " of " << pods.size() << " pods fit.\n";
  }
  return fitting == pods.size() ? 0 : 3;
}

void add_explain_pod(CLI::App& explain, int& rc) {
  struct options {
    std::string pod, output = "text", snapshot;
    cluster_options cluster;
  };
  auto* verb = explain.add_subcommand(
      "pod", "Why a pod waits for cards and what smallest change would help, or which cards it has");
  auto given = std::make_shared<options>();
  verb->add_option("pod", given->pod, "NAMESPACE/NAME; without a namespace: default")->required();
  verb->add_option("-o,--output", given->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  verb->add_option("--snapshot", given->snapshot, "Instead of a cluster: a file of quartermaster inspect --save");
  add_cluster_options(*verb, given->cluster);
  verb->footer(std::string(pod_example));
  verb->callback([given, &rc] {
    placements all;
    const auto read = gather(given->cluster, given->snapshot, all);
    if (!read) {
      std::cerr << "quartermaster: " << read.error().what << "\n";
      rc = 1;
      return;
    }
    rc = explain_pod(all, given->pod, given->output, std::cout, std::cerr);
  });
}

void add_simulate(CLI::App& app, int& rc) {
  struct options {
    std::string file, output = "text", snapshot;
    cluster_options cluster;
  };
  auto* verb = app.add_subcommand(
      "simulate", "Would these pods fit, and on which cards? From the cluster as it is; changes nothing");
  auto given = std::make_shared<options>();
  verb->add_option("-f,--file", given->file, "Pods and workloads in YAML or JSON; - is standard input")->required();
  verb->add_option("-o,--output", given->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  verb->add_option("--snapshot", given->snapshot, "Instead of a cluster: a file of quartermaster inspect --save");
  add_cluster_options(*verb, given->cluster);
  verb->footer(std::string(simulate_example));
  verb->callback([given, &rc] {
    const auto fail = [&](const std::string& why, int code) {
      std::cerr << "quartermaster: " << why << "\n";
      rc = code;
    };
    const auto file = yaml::read_file(given->file, std::cin);
    if (!file) return fail(file.error(), 2);
    std::vector<kube::pod> pods;
    std::string problem;
    for (const auto& one : manifests_in(*file))
      if (!add_pods(one, pods, problem)) return fail(problem, 2);
    if (pods.empty()) return fail(given->file + ": no Pod, and nothing that makes pods", 2);
    placements all;
    const auto read = gather(given->cluster, given->snapshot, all);
    if (!read) return fail(read.error().what, 1);
    rc = simulate(all, pods, given->output, std::cout);
  });
}

}  // namespace cli
