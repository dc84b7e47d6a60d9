#include "scheduler_config/edit/static_pod.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "api/names.hpp"
#include "scheduler_config/flags/judge_flags.hpp"
#include "scheduler_config/judge/judging.hpp"

namespace scheduler_config {
namespace {

using text::yaml::node;

constexpr std::string_view default_file = "/etc/kubernetes/scheduler-config.yaml";

const std::vector<const node*>& items(const node* parent, std::string_view key) {
  static const std::vector<const node*> none;
  const auto* match = text::yaml::find(parent, key);
  return match && match->sequence() ? match->items : none;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string_view folder(std::string_view path) { return path.substr(0, path.rfind('/')); }

const node* scheduler_container(const node* spec) {
  const auto& all = items(spec, "containers");
  const auto is = [](const node* node) {
    const auto& command = items(node, "command");
    return text::yaml::text_at(node, "name") == "kube-scheduler" ||
           (!command.empty() && file_name(command[0]->text) == "kube-scheduler");
  };
  const auto match = std::ranges::find_if(all, is);
  if (match != all.end()) return *match;
  return all.empty() ? nullptr : all.front();
}

/// By the name of the pod or the container, by the image, or by a word that starts the program.
bool runs_scheduler(const node* root, const node* container) {
  constexpr std::string_view program = "scheduler";
  const auto has = [&](const node* word) { return !word->text.starts_with('-') && word->text.contains(program); };
  return text::yaml::text_at(text::yaml::find(root, "metadata"), "name").contains(program) ||
         text::yaml::text_at(container, "name").contains(program) ||
         text::yaml::text_at(container, "image").contains(program) ||
         std::ranges::any_of(items(container, "command"), has) || std::ranges::any_of(items(container, "args"), has);
}

void read_mounts(static_pod& static_pod, const node* spec) {
  std::set<std::string_view> volumes;
  for (const auto* item : items(spec, "volumes")) volumes.insert(text::yaml::text_at(item, "name"));
  for (const auto* item : items(static_pod.container, "volumeMounts"))
    static_pod.mounts.push_back(
        {std::string(text::yaml::text_at(item, "mountPath")), volumes.contains(text::yaml::text_at(item, "name"))});
}

class pod_judge {
 public:
  pod_judge(const document& manifest, const document* config, const server& server)
      : pod_(read_static_pod(manifest)), config_(config), server_(server) {}

  findings run() {
    if (!pod_.runs_scheduler) return {not_a_scheduler()};
    flags();
    if (const auto minor = minor_of_image(pod_.image); minor != 0 && minor != server_.minor)
      out_.push_back({.issue = code::image_of_other_version,
                      .location = pod_.image_at,
                      .field = "image",
                      .value = pod_.image,
                      .other = "1." + std::to_string(server_.minor)});
    files();
    if (config_ && !file_.empty()) checksum();
    return std::move(out_);
  }

 private:
  finding not_a_scheduler() const {
    const auto* place = text::yaml::find_entry(pod_.root, "kind");
    return {.issue = code::other_program,
            .location = place ? place->key->location : pod_.root->location,
            .field = "spec.containers",
            .value = std::string(text::yaml::text_at(text::yaml::find(pod_.root, "metadata"), "name")),
            .other = pod_.image};
  }

  void flags() {
    out_ = judge_flags(pod_.line, config_, server_);
    const auto* config = pod_.find("config");
    if (config && !config->is_filled_in()) file_ = config->value;
    const bool meant = pod_.line.shell || pod_.line.unsplit || pod_.line.text ||
                       (config && (config->is_filled_in() || config->one_dash)) ||
                       std::ranges::any_of(out_, [](const finding& finding) {
                         return finding.issue == code::flag_removed || finding.value.starts_with("$(") ||
                                finding.hint.starts_with("--config");
                       });
    if (file_.empty() && !meant)
      out_.push_back({.issue = code::no_config_flag,
                      .location = container_field("command"),
                      .field = "command",
                      .hint = std::string(default_file)});
  }

  /// The files of one folder are one finding: one mount brings them all.
  void files() {
    std::map<std::string, std::pair<std::string, std::string>> missing;  // folder -> files, what names them
    const auto need = [&](std::string_view path, std::string_view field) {
      if (!path.starts_with('/') || pod_.mounted(path)) return;
      auto& [paths, names] = missing[std::string(folder(path))];
      if ((paths + ", ").contains(std::string(path) + ", ")) return;
      paths += (paths.empty() ? "" : ", ") + std::string(path);
      names += (names.empty() ? "" : ", ") + std::string(field);
    };
    for (const auto& opened_file : opened_files(pod_)) need(opened_file.path, opened_file.field);
    if (config_ && !file_.empty()) {
      for (const auto& opened_file : opened_files(*config_)) need(opened_file.path, opened_file.field);
    }
    for (const auto& [directory, entry] : missing) {
      const auto& [paths, names] = entry;
      const bool several = paths.contains(", ");
      const auto path = several ? directory : paths;
      const std::string kind = several ? "Directory" : "File";
      out_.push_back({.issue = code::file_not_mounted,
                      .location = container_field("volumeMounts"),
                      .field = "volumeMounts",
                      .value = paths,
                      .other = names,
                      .hint = "volumeMounts: - {name: NAME, mountPath: " + path +
                              ", readOnly: true}; volumes: - {name: NAME, hostPath: {path: " + path +
                              ", type: " + kind + "}}"});
    }
  }

  void checksum() {
    const auto* metadata = text::yaml::find(pod_.root, "metadata");
    const auto* annotations = text::yaml::find_entry(metadata, "annotations");
    const auto* position =
        annotations ? text::yaml::find_entry(annotations->value, api::names::scheduler_config_annotation) : nullptr;
    const auto sum = checksum_of(config_->text);
    if (position && position->value->text == sum) return;
    const auto* entry = position ? position : annotations ? annotations : text::yaml::find_entry(pod_.root, "metadata");
    out_.push_back({.issue = code::pod_not_replaced,
                    .location = entry ? entry->key->location : pod_.root->location,
                    .field = std::string(api::names::scheduler_config_annotation),
                    .hint = sum});
  }

  text::yaml::place container_field(std::string_view key) const {
    const auto* position = text::yaml::find_entry(pod_.container, key);
    return position ? position->key->location : pod_.container->location;
  }

  static_pod pod_;
  const document* config_;
  const server& server_;
  std::string file_;
  findings out_;
};

}  // namespace

const flag* static_pod::find(std::string_view name) const {
  // The last one counts.
  const auto match = std::ranges::find(line.flags.rbegin(), line.flags.rend(), name, &flag::name);
  return match == line.flags.rend() ? nullptr : &*match;
}

bool static_pod::mounted(std::string_view file) const {
  return std::ranges::any_of(mounts, [&](const mount& mount) {
    auto path = std::string_view(mount.path);
    while (path.ends_with('/') && path.size() > 1) path.remove_suffix(1);
    return mount.backed && !path.empty() &&
           (file == path || (file.starts_with(path) && (path == "/" || file[path.size()] == '/')));
  });
}

bool is_pod(const document& document) { return text::yaml::text_at(document.root, "kind") == "Pod"; }

static_pod read_static_pod(const document& document) {
  static_pod out;
  out.root = document.root;
  const auto* spec = text::yaml::find(document.root, "spec");
  out.container = scheduler_container(spec);
  if (!out.container) return out;
  out.runs_scheduler = runs_scheduler(document.root, out.container);
  if (const auto* image = text::yaml::find_entry(out.container, "image")) {
    out.image = image->value->text;
    out.image_at = image->key->location;
  }
  out.line = read_command_line(out.container);
  read_mounts(out, spec);
  return out;
}

std::vector<opened_file> opened_files(const static_pod& static_pod) {
  std::vector<opened_file> out;
  const auto* const connection =
      static_pod.find("config") ? "config" : "kubeconfig";  // the file's own counts where there is one
  for (const std::string name : {connection, "authentication-kubeconfig", "authorization-kubeconfig", "tls-cert-file",
                                 "tls-private-key-file", "client-ca-file"}) {
    if (const auto* match = static_pod.find(name); match && !match->value.empty())
      out.push_back({match->value, "--" + name});
  }
  return out;
}

int minor_of_image(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const auto tag = file_name(image);
  const auto colon = tag.rfind(':');
  if (colon == tag.npos) return 0;
  auto version = tag.substr(colon + 1);
  if (version.starts_with('v')) version.remove_prefix(1);
  if (!version.starts_with("1.")) return 0;
  version.remove_prefix(2);
  int out = 0;
  const auto [end, wrong] = std::from_chars(version.data(), version.data() + version.size(), out);
  return wrong == std::errc{} ? out : 0;
}

std::string checksum_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), sum.data(), &size, EVP_sha256(), nullptr);
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    static constexpr char digits[] = "0123456789abcdef";
    out += digits[sum[i] >> 4];
    out += digits[sum[i] & 15];
  }
  return out;
}

findings judge_static_pod(const document& manifest, const document* config, const server& server) {
  return pod_judge(manifest, config, server).run();
}

}  // namespace scheduler_config
