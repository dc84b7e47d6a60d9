// Random nodes, from the driver to the scraped page: a fixture of the stand-in, files of /proc, pods of the API server
// and the kubelet's answer, which change step by step as pods come, restart, finish and go. A model of its own says
// from the same nodes what the page has to be, sample by sample.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "agent/exporter/page.hpp"
#include "test/agent/cards/machine.hpp"
#include "test/agent/exporter/wire.hpp"
#include "test/rounds.hpp"

namespace agent::exporter {
namespace {

using nlohmann::json;
constexpr std::uint64_t mib = 1024 * 1024;
using wide = unsigned __int128;
using samples = std::map<std::string, double>;  // "name{what} value"

/// How a container came to its cards.
enum class grant { none, whole, whole_elsewhere_planned, replica, replica_planned, number_planned, planned, two_whole };

struct container {
  std::string name, id;
  bool is_reported = true;  ///< the pod's status has the ID
  grant kind = grant::none;
  int card = 0, other = 0;  ///< numbers
  int cores = 0;
  std::uint64_t memory_mib = 0;
};

struct node_pod {
  std::string ns, name, uid;
  bool has_finished = false, is_gone = false;  ///< gone: the API server does not have it any more
  std::vector<container> containers;
};

enum class place { pod, host, mps_server, unseen };

struct process {
  unsigned pid = 0;
  place home = place::host;
  std::string pod_uid, container_id;
  int card = 0;
  std::uint64_t memory_mib = 0;
  unsigned percent = 0;
  bool is_client = false;
};

struct card_state {
  std::string uuid;
  std::uint64_t used_mib = 0;
  unsigned percent = 0;
  bool says_utilization = true, samples_processes = true;
};

constexpr std::uint64_t card_mib = 81920;

class node {
 public:
  explicit node(unsigned long seed) : random_(seed), machine_("a100x8"), content_(machine_.content()) {
    const auto count = 1 + below(4);
    while (content_["cards"].size() > count) content_["cards"].erase(content_["cards"].size() - 1);
    for (const auto& card : content_["cards"]) cards.push_back({card["uuid"].get<std::string>()});
    nvml_.emplace(*cards::nvml_library::load(machine_.root));
    EXPECT_EQ((*nvml_)(cards::call::init), nvml::success);
  }
  ~node() { (*nvml_)(cards::call::shutdown); }
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  void step() {
    ++now_;
    for (unsigned i = 0; i <= below(4); ++i) change();
    for (auto& card : cards) {
      card.used_mib = below(3) == 0 ? below(card_mib) : below(20'000);
      card.percent = below(101);
      card.says_utilization = below(10) != 0;
      card.samples_processes = below(10) != 0;
    }
    knows_pods = below(12) != 0;
  }

  samples page_now() {
    write_files();
    struct page page;
    page.node = "n";
    page.mode = "m";
    page.report = cards::read_inventory(*nvml_);
    page.usage = reader_.read(*nvml_);
    std::vector<agent::exporter::pod> decoded;
    for (const auto& pod : pods)
      if (!pod.is_gone) decoded.push_back(*agent::exporter::pod::decode(wire_of(sent(pod))));
    std::ranges::shuffle(decoded, random_);
    std::vector<const agent::exporter::pod*> known;
    for (const auto& pod : decoded) known.push_back(&pod);
    const auto devices = kubelet::devices_in(wire_of(kubelet()));
    EXPECT_TRUE(devices);
    page.parts = attribute(page.usage, *devices, knows_pods ? &known : nullptr);
    controller::metric_text text;
    write(page, text);
    return read(text.take());
  }

  std::vector<card_state> cards;
  std::vector<node_pod> pods;
  std::vector<process> processes;
  bool knows_pods = true;

 private:
  unsigned below(std::uint64_t count) { return static_cast<unsigned>(random_() % count); }
  std::string digits(std::size_t count) {
    std::string out;
    while (out.size() < count) out += "0123456789abcdef"[below(16)];
    return out;
  }
  std::string new_uid() { return digits(8) + "-" + digits(4) + "-" + digits(4) + "-" + digits(4) + "-" + digits(12); }

  void change() {
    switch (below(8)) {
      case 0:
      case 1:
        return add_pod();
      case 2:
      case 3:
      case 4:
        return add_process();
      case 5:  // a container is started again; processes of the old one may still be there
        if (auto* container = any_container()) {
          container->id = digits(64);
          container->is_reported = below(3) != 0;
        }
        return;
      case 6:
        if (!processes.empty()) processes.erase(processes.begin() + below(processes.size()));
        return;
      default:
        if (pods.empty()) return;
        auto& pod = pods[below(pods.size())];
        (below(2) ? pod.has_finished : pod.is_gone) = true;
        if (below(4) == 0) std::erase_if(pods, [](const node_pod& pod) { return pod.is_gone; });
    }
  }

  void add_pod() {
    if (pods.size() > 12) return;
    node_pod pod;
    pod.ns = below(2) ? "team-a" : "team-b";
    pod.name = "p" + std::to_string(++last_);
    pod.uid = new_uid();
    for (unsigned i = 0; i <= below(2); ++i) {
      container container;
      container.name = "c" + std::to_string(i);
      container.id = digits(64);
      container.is_reported = below(5) != 0;
      container.kind = static_cast<grant>(below(8));
      container.card = static_cast<int>(below(cards.size()));
      container.other = static_cast<int>((container.card + 1) % cards.size());
      container.cores = static_cast<int>(below(101));
      container.memory_mib = below(card_mib);
      pod.containers.push_back(container);
    }
    pods.push_back(pod);
  }

  void add_process() {
    if (processes.size() > 40) return;
    process made;
    made.pid = 100 + ++last_;
    made.home = static_cast<place>(below(6) < 3 ? 0 : below(4));
    made.card = static_cast<int>(below(cards.size()));
    made.memory_mib = below(12'000);
    made.percent = below(101);
    made.is_client = below(4) == 0;
    if (made.home == place::pod) {
      made.pod_uid = new_uid();
      made.container_id = digits(64);
      if (!pods.empty() && below(8) != 0) {
        const auto& pod = pods[below(pods.size())];
        made.pod_uid = pod.uid;
        made.container_id = pod.containers[below(pod.containers.size())].id;
      }
    }
    processes.push_back(made);
  }

  container* any_container() {
    if (pods.empty()) return nullptr;
    auto& pod = pods[below(pods.size())];
    return &pod.containers[below(pod.containers.size())];
  }

  std::string uuid_of(int card) const { return cards[static_cast<std::size_t>(card)].uuid; }

  sent_pod sent(const node_pod& pod) const {
    sent_pod out{pod.ns, pod.name, pod.uid, pod.has_finished ? "Failed" : "Running", "", {}};
    json placed = json::object();
    for (const auto& container : pod.containers) {
      out.containers.push_back({container.name, container.is_reported ? container.id : "", "", false});
      const auto card = container.kind == grant::whole_elsewhere_planned ? container.other : container.card;
      if (container.kind == grant::whole_elsewhere_planned || container.kind == grant::replica_planned ||
          container.kind == grant::number_planned || container.kind == grant::planned)
        placed[container.name] = {
            {{"card", uuid_of(card)}, {"cores", container.cores}, {"memoryMiB", container.memory_mib}}};
    }
    if (!placed.empty()) out.placement = json{{"v", 1}, {"node", "n"}, {"containers", placed}}.dump();
    return out;
  }

  std::vector<sent_devices> kubelet() const {
    std::vector<sent_devices> out;
    for (const auto& pod : pods)
      for (const auto& container : pod.containers) {
        sent_devices entry{pod.ns, pod.name, container.name, "nvidia.com/gpu", {}};
        const auto uuid = uuid_of(container.card);
        switch (container.kind) {
          case grant::none:
          case grant::planned:
            break;
          case grant::whole:
          case grant::whole_elsewhere_planned:
            entry.ids = {uuid};
            break;
          case grant::two_whole:
            entry.ids = {uuid, uuid_of(container.other)};
            break;
          case grant::replica:
          case grant::replica_planned:
            entry.ids = {uuid + "::3"};
            break;
          case grant::number_planned:
            entry.ids = {uuid_of(container.other) + "-5"};
        }
        out.push_back(entry);
      }
    return out;
  }

  void write_files() {
    namespace files = std::filesystem;
    files::remove_all(machine_.root / "proc");
    for (const auto& process : processes) {
      if (process.home == place::unseen) continue;
      const auto folder = machine_.root / "proc" / std::to_string(process.pid);
      files::create_directories(folder);
      std::string path = "/system.slice/some.service";
      if (process.home == place::pod && process.pid % 2 == 0)
        path = "/kubepods/burstable/pod" + process.pod_uid + "/" + process.container_id;
      if (process.home == place::pod && process.pid % 2 == 1) {
        auto uid = process.pod_uid;
        std::ranges::replace(uid, '-', '_');
        path = "/kubepods.slice/kubepods-pod" + uid + ".slice/cri-containerd-" + process.container_id + ".scope";
      }
      std::ofstream(folder / "cgroup") << (process.pid % 3 == 0 ? "4:memory:" : "0::") << path << "\n";
      std::ofstream(folder / "comm") << (process.home == place::mps_server ? "nvidia-cuda-mps" : "python") << "\n";
    }
    for (std::size_t i = 0; i < cards.size(); ++i) {
      auto& card = content_["cards"][i];
      card["memory_used_mib"] = cards[i].used_mib;
      card["utilisation_gpu"] = cards[i].says_utilization ? json(cards[i].percent) : json();
      card["errors"] = json::object();
      if (!cards[i].samples_processes) card["errors"]["nvmlDeviceGetProcessUtilization"] = "not_supported";
      card["processes"] = json::array();
      for (const auto& process : processes)
        if (process.card == static_cast<int>(i))
          card["processes"].push_back({{"pid", process.pid},
                                       {"kind", process.is_client ? "mps" : "compute"},
                                       {"memory_mib", process.memory_mib},
                                       {"sm", process.percent},
                                       {"time_us", now_}});
    }
    machine_.replace(content_);
  }

  /// "quartermaster_share_x GPU-1 ns/pod/container", and a reason in the last place for cards.
  static samples read(const std::string& text) {
    samples out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#")) continue;
      const auto open = line.find('{'), close = line.rfind('}');
      if (open == std::string::npos) {  // of the exporter itself
        EXPECT_EQ(line, "quartermaster_exporter_shares_left_out 0");
        continue;
      }
      std::map<std::string, std::string> labels;
      for (auto position = open + 1; position < close;) {
        const auto equal = line.find("=\"", position), end = line.find('"', equal + 2);
        labels[line.substr(position, equal - position)] = line.substr(equal + 2, end - equal - 2);
        position = end + 2;
      }
      auto name = line.substr(0, open) + " " + labels["uuid"];
      if (labels.contains("pod")) name += " " + labels["namespace"] + "/" + labels["pod"] + "/" + labels["container"];
      for (const auto* more : {"reason", "xid"})
        if (labels.contains(more)) name += " " + labels[more];
      EXPECT_TRUE(out.emplace(name, std::stod(line.substr(close + 2))).second) << "twice: " << line;
    }
    return out;
  }

  std::mt19937_64 random_;
  cards::machine machine_;
  json content_;
  std::optional<cards::nvml_library> nvml_;
  cards::usage_reader reader_{machine_.root / "proc"};
  std::uint64_t now_ = 1'000;
  unsigned last_ = 0;
};

/// What the page has to say of shares and of what is left, by the rules of docs/agent.md and nothing else.
class model {
 public:
  explicit model(const node& node) : node_(node) {
    for (int card = 0; card < static_cast<int>(node.cards.size()); ++card) add(card);
  }
  const samples& expected() const { return out_; }

 private:
  struct amounts {
    bool is_given = false, has_limits = false;
    std::uint64_t cores = 0, memory = 0;
    std::uint64_t used = 0, busy = 0;
    int processes = 0, clients = 0;
  };

  /// What the container got of the card: nothing, a part without limits, or so many cores and bytes.
  void give(std::map<std::string, amounts>& shares, const node_pod& pod, const container& container, int card) const {
    const bool plans = node_.knows_pods;
    const bool is_own = container.card == card, is_other = container.other == card;
    std::uint64_t cores = 0, memory = 0;
    bool has_limits = true;
    switch (container.kind) {
      case grant::none:
        return;
      case grant::two_whole:
        if (!is_own && !is_other) return;
        cores = 100, memory = card_mib * mib;
        break;
      case grant::whole:
      case grant::whole_elsewhere_planned:
        if (!is_own) return;
        cores = 100, memory = card_mib * mib;
        break;
      case grant::replica:
        if (!is_own) return;
        has_limits = false;
        break;
      case grant::replica_planned:
        if (!is_own) return;
        has_limits = plans;
        cores = static_cast<std::uint64_t>(container.cores), memory = container.memory_mib * mib;
        break;
      case grant::number_planned:
      case grant::planned:
        if (!is_own || !plans) return;
        cores = static_cast<std::uint64_t>(container.cores), memory = container.memory_mib * mib;
    }
    shares[pod.ns + "/" + pod.name + "/" + container.name] = {true, has_limits, cores, memory, 0, 0, 0, 0};
  }

  /// "ns/pod/container" of a process in a pod; empty where no one knows.
  std::string owner(const process& process) const {
    if (!node_.knows_pods) return {};
    for (const auto& pod : node_.pods)
      for (const auto& container : pod.containers)
        if (!pod.is_gone && container.is_reported && container.id == process.container_id)
          return pod.ns + "/" + pod.name + "/" + container.name;
    for (const auto& pod : node_.pods)
      if (!pod.is_gone && pod.uid == process.pod_uid) return pod.ns + "/" + pod.name + "/";
    return {};
  }

  void add(int card) {
    const auto& state = node_.cards[static_cast<std::size_t>(card)];
    std::map<std::string, amounts> shares;
    for (const auto& pod : node_.pods)
      for (const auto& container : pod.containers)
        if (!node_.knows_pods || (!pod.is_gone && !pod.has_finished)) give(shares, pod, container, card);
    std::map<std::string, amounts> rest{{"host", {}}, {"mps_server", {}}, {"unknown_pod", {}}, {"unseen", {}}};
    std::vector<const process*> servers;
    bool sees_any = false, has_strangers = false;
    int clients = 0;
    for (const auto& process : node_.processes) {
      if (process.card != card) continue;
      clients += process.is_client;
      sees_any |= process.home != place::unseen;
      auto* target = &rest["unseen"];
      if (process.home == place::host) target = &rest["host"];
      if (process.home == place::pod) {
        const auto name = owner(process);
        target = name.empty() ? &rest["unknown_pod"] : &shares[name];
        has_strangers |= name.empty();
      }
      has_strangers |= process.home == place::host;
      if (process.home == place::mps_server) {
        servers.push_back(&process);
        continue;
      }
      target->used += process.memory_mib * mib;
      target->busy += process.percent * 10'000;
      ++target->processes;
      target->clients += process.is_client;
    }
    for (const auto* server : servers) {
      auto& target = shares.size() == 1 ? shares.begin()->second : rest["mps_server"];
      target.used += server->memory_mib * mib;
      target.busy += server->percent * 10'000;
    }
    const bool is_alone = shares.size() == 1 && !has_strangers;
    say("card_mps_clients", state.uuid, clients);
    for (const auto& [name, share] : shares) {
      const auto place = state.uuid + " " + name;
      if (share.is_given && share.has_limits) {
        out_["quartermaster_share_allocated_cores_ratio " + place] = static_cast<double>(share.cores) / 100;
        out_["quartermaster_share_allocated_memory_bytes " + place] = static_cast<double>(share.memory);
      }
      say("share_processes", place, share.processes);
      say("share_mps_clients", place, share.clients);
    }
    divide(state.uuid, shares, rest, state.used_mib * mib, sees_any, is_alone, &amounts::used, 1, "memory_used_bytes",
           "unattributed_memory_bytes");
    if (state.says_utilization)
      divide(state.uuid, shares, rest, state.percent * 10'000, sees_any && state.samples_processes, is_alone,
             &amounts::busy, 1e6, "utilization_ratio", "unattributed_utilization_ratio");
  }

  void say(const std::string& name, const std::string& place, int amount) {
    out_["quartermaster_" + name + " " + place] = amount;
  }

  void divide(const std::string& uuid, const std::map<std::string, amounts>& shares,
              const std::map<std::string, amounts>& rest, std::uint64_t total, bool sees, bool is_alone,
              std::uint64_t amounts::* part, double unit, const std::string& share_name, const std::string& rest_name) {
    wide sum = 0;
    for (const auto* parts : {&shares, &rest})
      for (const auto& [name, entry] : *parts) sum += entry.*part;
    const auto fitted = [&](std::uint64_t amount) {
      return sum <= total ? amount : static_cast<std::uint64_t>(static_cast<wide>(amount) * total / sum);
    };
    std::uint64_t left = total;
    const auto tell = [&](const std::string& name, std::uint64_t amount) {
      out_["quartermaster_" + name] = static_cast<double>(amount) / unit;
      left -= amount;
    };
    for (const auto& [name, share] : shares) {
      if (!sees && !is_alone) continue;
      tell("share_" + share_name + " " + uuid + " " + name, sees ? fitted(share.*part) : total);
    }
    for (const auto* reason : {"host", "mps_server", "unknown_pod"})
      tell("card_" + rest_name + " " + uuid + " " + reason, sees ? fitted(rest.at(reason).*part) : 0);
    tell("card_" + rest_name + " " + uuid + " unseen", left);
  }

  const node& node_;
  samples out_;
};

/// The samples that the model speaks of.
samples shares_in(const samples& all) {
  samples out;
  for (const auto& [name, value] : all)
    if (name.starts_with("quartermaster_share_") || name.find("_unattributed_") != name.npos ||
        name.starts_with("quartermaster_card_mps_clients"))
      out.emplace(name, value);
  return out;
}

/// The sum over the shares of a card, and with what is left.
void expect_sums(const samples& page, const std::string& uuid, const std::string& share, const std::string& rest,
                 const std::string& card, double unit) {
  const auto sum = [&](const std::string& name) {
    long long out = 0;
    for (const auto& [key, value] : page)
      if (key.starts_with("quartermaster_" + name + " " + uuid)) out += std::llround(value * unit);
    return out;
  };
  const auto shares = sum("share_" + share), left = sum("card_" + rest), all = sum("card_" + card);
  EXPECT_LE(shares, all) << uuid << " " << share;
  EXPECT_EQ(shares + left, all) << uuid << " " << share;
}

std::string difference(const samples& expected, const samples& actual) {
  std::string out;
  for (const auto& [name, value] : expected) {
    const auto match = actual.find(name);
    if (match == actual.end())
      out += name + " is missing, expected " + std::to_string(value) + "\n";
    else if (match->second != value)
      out += name + " is " + std::to_string(match->second) + ", expected " + std::to_string(value) + "\n";
  }
  for (const auto& [name, value] : actual)
    if (!expected.contains(name)) out += name + " is " + std::to_string(value) + ", and is not expected\n";
  return out;
}

TEST(exporter_property, S73_an_independent_reader_agrees_on_every_sample) {
  const char* chosen = std::getenv("QM_SEED");
  const auto first = chosen ? std::strtoul(chosen, nullptr, 10) : 1;
  std::size_t compared = 0, shares = 0;
  const auto nodes = chosen ? 1 : test::rounds(2UL, 8UL);
  for (unsigned long seed = first; seed < first + nodes; ++seed) {
    node node(seed);
    for (int step = 0; step < 40 && !::testing::Test::HasFailure(); ++step) {
      node.step();
      const auto page = node.page_now();
      const auto actual = shares_in(page);
      const auto expected = model(node).expected();
      EXPECT_EQ(difference(expected, actual), "") << "QM_SEED=" << seed << ", step " << step;
      for (const auto& card : node.cards) {
        expect_sums(page, card.uuid, "memory_used_bytes", "unattributed_memory_bytes", "memory_used_bytes", 1);
        if (card.says_utilization)
          expect_sums(page, card.uuid, "utilization_ratio", "unattributed_utilization_ratio", "utilization_ratio", 1e6);
      }
      compared += actual.size();
      for (const auto& [name, value] : actual) shares += name.starts_with("quartermaster_share_memory_used_bytes");
    }
  }
  if (!chosen) EXPECT_GT(shares, 125 * nodes) << "the nodes have too little on them";
  RecordProperty("samples", static_cast<int>(compared));
}

}  // namespace
}  // namespace agent::exporter
