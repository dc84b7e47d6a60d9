#include "cli/lint/lint_finding.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "reconcilers/declarations/texts.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using text::language, text::shown;
using enum text::severity;

struct code_text {
  lint_code code;
  std::string_view name;
  text::severity level;
  text::message_pattern en, zh;
};

// {field} {value} {key} {other} {hint}. Of an objection declarations::text_of says what is wrong.
// clang-format off
constexpr std::array<code_text, lint_code_count> table{{
  {lint_code::not_an_object, "not_an_object", warning,
   {"not a Kubernetes object: it has no kind; not judged", "apiVersion, kind and metadata", "add them, or leave this document out", ""},
   {"不是 Kubernetes 对象：缺少 kind；未检查", "apiVersion、kind 与 metadata", "请补充，或去掉这一段", ""}},
  {lint_code::not_a_string, "not_a_string", error,
   {"{field} is {value}, which YAML reads as {other}; Kubernetes refuses anything but text here", "text", "write it in quotes: {hint}", ""},
   {"{field} 的值为 {value}，YAML 将其读作{other}；Kubernetes 在这里只接受文本", "文本", "请加上引号：{hint}", ""}},
  {lint_code::not_a_mapping, "not_a_mapping", error,
   {"{field} is {other}", "a mapping of names to values", "write each as a line of its own below it: name: value", ""},
   {"{field} 是{other}", "名称到值的映射", "请在其下逐行填写：名称: 值", ""}},
  {lint_code::written_twice, "written_twice", warning,
   {"{field} is written again further down; only the last counts", "each name once", "remove one of the two", ""},
   {"{field} 在后面又写了一次，只有最后一次生效", "每个名称只写一次", "请删除其中之一", ""}},
  {lint_code::object_twice, "object_twice", warning,
   {"{value} is in {other} again; the later one counts", "each object once", "remove one of the two", ""},
   {"{value} 在 {other} 中再次出现，以后者为准", "每个对象只出现一次", "请删除其中之一", ""}},
  {lint_code::name_malformed, "name_malformed", error,
   {"{field} is \"{value}\", which Kubernetes refuses", "a lower-case DNS name: letters, figures, - and . with a letter or figure at both ends", "write a legal name", "write \"{hint}\""},
   {"{field} 的值为“{value}”，Kubernetes 不接受", "小写 DNS 名称：字母、数字、- 与 .，首尾为字母或数字", "请填写合法的名称", "请改为“{hint}”"}},
  {lint_code::not_selected, "not_selected", warning,
   {"{field} does not make it a declaration, though its name begins with cf-crl-: no one reads it, and no pod is held to it", "label features.cpaas.io/type: CustomResourceLimitation, or for a device configuration device-plugin.cpaas.io/config: \"true\"", "add the label", "write {hint}"},
   {"{field} 未将其标明为声明，虽然名称以 cf-crl- 开头：没有人读取它，也不会约束任何 Pod", "标签 features.cpaas.io/type: CustomResourceLimitation；设备配置为 device-plugin.cpaas.io/config: \"true\"", "请添加该标签", "请改为 {hint}"}},
  {lint_code::spec_unreadable, "spec_unreadable", error,
   {"{field} is no pod spec: {other}", "containers as a list, resources.limits as a mapping", "correct it; kubectl explain pod.spec tells the form", ""},
   {"{field} 不是 Pod spec：{other}", "containers 为列表，resources.limits 为映射", "请更正；kubectl explain pod.spec 说明其格式", ""}},
  {lint_code::unknown_field, "unknown_field", error,
   {"{field}: Kubernetes has no field of that name there; its API server refuses or drops it", "the names that kubectl explain lists", "correct the name, or remove it", "did you mean {hint}?"},
   {"{field}：Kubernetes 在此处没有这个字段，API server 会拒绝或丢弃它", "kubectl explain 列出的名称", "请更正名称，或删除它", "是否想写 {hint}？"}},
  {lint_code::not_judged, "not_judged", warning,
   {"{value} is a kind that is not known here, and nothing in it has the form of a pod; not judged", "", "look at it by other means", "did you mean {hint}?"},
   {"{value} 是未知的类型，其中也没有 Pod 形式的内容；未检查", "", "请用其他方式检查", "是否想写 {hint}？"}},

  {lint_code::resource_name, "resource_name", error,
   {"{field}: Kubernetes has no resource of that name", "cpu, memory, ephemeral-storage, hugepages-<size>, or <domain>/<name> as the device plugin advertises it", "write the full name", "did you mean {hint}?"},
   {"{field}：Kubernetes 没有这个资源", "cpu、memory、ephemeral-storage、hugepages-<大小>，或设备插件上报的 <域名>/<名称>", "请填写完整的资源名", "是否想写 {hint}？"}},
  {lint_code::resource_of_kubernetes, "resource_of_kubernetes", error,
   {"{field}: a name of Kubernetes' own domain; the API server accepts it, no node has it, and the pod would wait for ever", "a resource that a device plugin offers, as <domain>/<name>", "write {hint}", ""},
   {"{field}：这是 Kubernetes 自己域名下的名称；API server 会接受它，但没有节点提供，Pod 将一直等待", "设备插件上报的 <域名>/<名称>", "请改为 {hint}", ""}},
  {lint_code::amount_malformed, "amount_malformed", error,
   {"{field} is \"{value}\", which is no amount", "a whole number from 0", "write a whole number", ""},
   {"{field} 的值为“{value}”，不是数量", "从 0 开始的整数", "请填写整数", ""}},
  {lint_code::amount_fraction, "amount_fraction", error,
   {"{field} is \"{value}\": Kubernetes counts {key} in whole units and refuses fractions", "a whole number from 0", "write {hint}; a part of a card is asked for by a resource that is counted in shares", ""},
   {"{field} 的值为“{value}”：Kubernetes 按整数计算 {key}，不接受小数", "从 0 开始的整数", "请改为 {hint}；若只需要一张卡的一部分，请使用按份额计数的资源", ""}},
  {lint_code::amount_negative, "amount_negative", error,
   {"{field} is \"{value}\", less than nothing", "a whole number from 0", "write a whole number from 0", ""},
   {"{field} 的值为“{value}”，小于零", "从 0 开始的整数", "请填写从 0 开始的整数", ""}},
  {lint_code::amount_too_large, "amount_too_large", error,
   {"{field} is \"{value}\", more than Kubernetes can count: it says \"must be an integer\"", "a whole number from 0", "write a smaller number", ""},
   {"{field} 的值为“{value}”，超出 Kubernetes 可计数的范围（它会提示“must be an integer”）", "从 0 开始的整数", "请填写更小的整数", ""}},
  {lint_code::amount_in_bytes, "amount_in_bytes", error,
   {"{field} is \"{value}\", but {key} counts in {other}, not in bytes", "a whole number of {other}", "write {hint}", ""},
   {"{field} 的值为“{value}”，但 {key} 的单位是 {other}，不是字节", "以 {other} 为单位的整数", "请改为 {hint}", ""}},
  {lint_code::resources_of_pod, "resources_of_pod", error,
   {"{field}: Kubernetes takes only cpu, memory and hugepages for a pod as a whole", "cpu, memory, hugepages-<size>", "write {key} under limits of the container that uses it", ""},
   {"{field}：Kubernetes 在 Pod 级别只接受 cpu、memory 与 hugepages", "cpu、memory、hugepages-<大小>", "请将 {key} 写在使用它的容器的 limits 下", ""}},
  {lint_code::resources_of_ephemeral, "resources_of_ephemeral", error,
   {"{field}: Kubernetes refuses resources of an ephemeral container", "no resources", "remove them; such a container uses what the pod has", ""},
   {"{field}：Kubernetes 不接受临时容器的 resources", "不填写 resources", "请删除；临时容器使用 Pod 已有的资源", ""}},
  {lint_code::quota_counts_nothing, "quota_counts_nothing", warning,
   {"{field}: Kubernetes stores it and counts nothing by it", "for such a resource requests.<domain>/<name> alone", "write requests.{key}", "write requests.{hint}"},
   {"{field}：Kubernetes 会保存它，但不会据此计数", "此类资源只能写 requests.<域名>/<名称>", "请改为 requests.{key}", "请改为 requests.{hint}"}},
  {lint_code::request_without_limit, "request_without_limit", error,
   {"{field} is \"{value}\" and there is no limit: Kubernetes never oversells {key}, so it wants a limit, and equal", "limits alone, or requests equal to limits", "write {key} under limits and leave the request out", ""},
   {"{field} 的值为“{value}”，但没有 limits：Kubernetes 不允许超卖 {key}，必须设置相等的 limits", "只写 limits，或 requests 与 limits 相等", "请将 {key} 写在 limits 下，并删除 requests", ""}},
  {lint_code::request_differs, "request_differs", error,
   {"{field} is \"{value}\", the limit is \"{other}\": Kubernetes never oversells {key}, so both must be equal", "limits alone, or requests equal to limits", "leave the request out", ""},
   {"{field} 的值为“{value}”，limits 为“{other}”：Kubernetes 不允许超卖 {key}，两者必须相等", "只写 limits，或 requests 与 limits 相等", "请删除 requests", ""}},

  {lint_code::resource_forbidden, "resource_forbidden", error, {"", "no amount", "remove it", ""}, {"", "不允许填写", "请删除它", ""}},
  {lint_code::amount_not_legal, "amount_not_legal", error, {"", "", "write {hint}", ""}, {"", "", "请改为 {hint}", ""}},
  {lint_code::partner_missing, "partner_missing", error, {"", "", "add {other}, or write {hint}", ""}, {"", "", "请添加 {other}，或改为 {hint}", ""}},
  {lint_code::pod_amount_not_legal, "pod_amount_not_legal", error, {"", "", "write an allowed number, or remove it", ""}, {"", "", "请填写允许的数值，或删除它", ""}},
  {lint_code::required_missing, "required_missing", error, {"", "1 or more", "add {key} under limits", ""}, {"", "不小于 1", "请在 limits 下添加 {key}", ""}},
  {lint_code::excluded_together, "excluded_together", error, {"", "one of the two", "remove {key} or {other}", ""}, {"", "两者之一", "请删除 {key} 或 {other}", ""}},
  {lint_code::request_unequal, "request_unequal", error, {"", "", "leave the request out", ""}, {"", "", "请删除 requests", ""}},
  {lint_code::too_large, "too_large", error, {"", "at most 256 containers with 2048 limits", "make it smaller", ""}, {"", "最多 256 个容器、2048 个 limits", "请缩小它", ""}},
  {lint_code::related_missing, "related_missing", warning, {"", "", "add {other}", ""}, {"", "", "请添加 {other}", ""}},
  {lint_code::not_offered, "not_offered", warning, {"", "", "enrol a node that offers it", ""}, {"", "", "请接入提供它的节点", ""}},

  {lint_code::unfamiliar_resource, "unfamiliar_resource", warning,
   {"{field}: neither a declaration here nor a module has a resource of that name", "a resource that a node offers", "check the name", "did you mean {hint}?"},
   {"{field}：此处的声明与内置模块都没有这个名称的资源", "某个节点提供的资源", "请检查名称", "是否想写 {hint}？"}},
  {lint_code::visible_devices, "visible_devices", warning,
   {"{field} is \"{value}\": the container sees these cards past what it asks for, and no one counts them", "none", "leave it out, and ask for cards under resources.limits", ""},
   {"{field} 的值为“{value}”：容器会看到这些卡，与其请求无关，也没有人计数", "不填写", "请删除它，并在 resources.limits 下请求卡", ""}},
  {lint_code::cuda_devices, "cuda_devices", warning,
   {"{field} is \"{value}\", and the container has {other}: they count from 0 there, so CUDA sees none from the first number on that is too large", "numbers below the count of its cards", "leave it out: a container sees its own cards only", ""},
   {"{field} 的值为“{value}”，而容器有 {other}：容器内的卡从 0 开始编号，从第一个过大的编号起 CUDA 看不到卡", "小于卡数的编号", "请删除它：容器只会看到自己的卡", ""}},

  {lint_code::unknown_resource, "unknown_resource", warning,
   {"{field}: no node offers it and no one declares it, so the pod would wait for ever", "a resource that a node offers", "check the name, or enrol a node that offers it", "did you mean {hint}?"},
   {"{field}：没有节点提供它，也没有声明，Pod 将一直等待", "某个节点提供的资源", "请检查名称，或接入提供它的节点", "是否想写 {hint}？"}},
  {lint_code::compatibility, "compatibility", warning, {"", "", "", ""}, {"", "", "", ""}},
}};
// clang-format on

static_assert(
    [] {
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i].code != static_cast<lint_code>(i)) return false;
      }
      return true;
    }(),
    "one row a code, in the order of the enumeration");

const code_text& row_of(lint_code c) { return table[static_cast<std::size_t>(c)]; }

std::string filled(std::string_view pattern, const lint_details& details) {
  std::string out;
  while (!pattern.empty()) {
    const auto open = std::min(pattern.find('{'), pattern.size());
    out += pattern.substr(0, open);
    pattern.remove_prefix(open);
    const auto close = pattern.find('}');
    if (close == std::string_view::npos) break;
    const auto name = pattern.substr(1, close - 1);
    if (name == "field") out += details.field;
    if (name == "value") out += shown(details.value);
    if (name == "key") out += shown(details.key);
    if (name == "other") out += shown(details.other, 240);
    if (name == "hint") out += shown(details.hint);
    pattern.remove_prefix(close + 1);
  }
  return out;
}

std::string joined(std::string_view wrong, std::string_view allowed, std::string_view remedy, language locale) {
  const bool chinese = locale == language::zh;
  std::string out(wrong);
  if (!allowed.empty()) out.append(chinese ? "；允许：" : "; allowed: ").append(allowed);
  return out.append(chinese ? "；" : "; ").append(remedy);
}

lint_finding about(const manifest& object, text::yaml::place place) {
  lint_finding out;
  out.file = object.file->name;
  out.location = place;
  out.kind = object.kind;
  out.object = object.key;
  return out;
}

std::string_view kind_of(const text::yaml::node& node, language locale) {
  const bool zh = locale == language::zh;
  if (node.sequence()) return zh ? "列表" : "a list";
  if (node.mapping()) return zh ? "映射" : "a mapping";
  return text::yaml::type_of(node) == text::yaml::type::boolean ? (zh ? "布尔值" : "true or false")
                                                                : (zh ? "数字" : "a number");
}

std::string text_of(text::severity level, language locale) {
  if (locale == language::en) return std::string(declarations::to_string(level));
  return level == error ? "错误" : "警告";
}

}  // namespace

std::string_view to_string(lint_code c) noexcept { return row_of(c).name; }

lint_finding finding_of(lint_code code, const manifest& object, text::yaml::place place, const lint_details& details,
                        language locale) {
  const auto& row = row_of(code);
  const auto& words = locale == language::zh ? row.zh : row.en;
  auto out = about(object, place);
  out.level = row.level;
  out.code = row.name;
  out.field = details.field;
  out.value = shown(details.value);
  out.allowed = filled(words.allowed, details);
  const bool guessed = !details.hint.empty() && !words.remedy_with_hint.empty();
  out.remedy = filled(guessed ? words.remedy_with_hint : words.remedy, details);
  out.message = joined(filled(words.wrong, details), out.allowed, out.remedy, locale);
  return out;
}

lint_finding finding_of(const config_map_file::not_text& not_text, const manifest& object, language locale,
                        const declarations::finding* judged) {
  const auto& value = *not_text.value;
  const auto text = value.scalar() ? value.text : text::yaml::canonical(value);
  const auto hint = value.scalar() ? "\"" + text + "\"" : "'" + text + "'";
  const lint_details details{.field = not_text.field, .value = text, .other = kind_of(value, locale), .hint = hint};
  auto out = finding_of(lint_code::not_a_string, object, not_text.key->location, details, locale);
  if (!judged) return out;
  const auto& row = row_of(lint_code::not_a_string);
  out.allowed = allowed_of(*judged, locale);
  out.remedy = remedy_of(*judged, locale);
  out.message =
      joined(filled((locale == language::zh ? row.zh : row.en).wrong, details), out.allowed, out.remedy, locale);
  return out;
}

lint_finding finding_of(const declarations::finding& finding, const manifest& object, text::yaml::place place,
                        language language) {
  auto out = about(object, place);
  out.level = severity_of(finding);
  out.code = to_string(finding.kind);
  out.field = finding.field;
  out.value = finding.value;
  out.allowed = allowed_of(finding, language);
  out.remedy = remedy_of(finding, language);
  out.message = message_of(finding, language);
  return out;
}

lint_finding finding_of(const declarations::objection& objection, const manifest& object, text::yaml::place place,
                        std::string_view field, language locale) {
  const auto code = static_cast<lint_code>(static_cast<std::size_t>(lint_code::resource_forbidden) +
                                           static_cast<std::size_t>(objection.kind));
  const auto amount =
      objection.kind == declarations::objection_kind::missing ? std::string() : std::to_string(objection.amount);
  const auto nearest = std::to_string(objection.nearest);
  auto out = finding_of(code, object, place, {field, amount, objection.key, objection.other, nearest}, locale);
  if (const auto* words = declarations::vocabulary_of(objection.key);
      words && objection.kind == declarations::objection_kind::not_legal) {
    out.allowed = locale == language::zh ? words->legal.words_zh : words->legal.words;
  } else if (words && objection.kind == declarations::objection_kind::pod_amount) {
    out.allowed = locale == language::zh ? words->on_pod.words_zh : words->on_pod.words;
    out.value = objection.nearest > 0 ? nearest : std::string();
  }
  out.message = declarations::text_of(objection, locale) + (locale == language::zh ? "；" : "; ") + out.remedy;
  return out;
}

lint_finding finding_of_compatibility(std::string_view text, const manifest& object, text::yaml::place place,
                                      std::string_view field) {
  auto out = about(object, place);
  out.level = row_of(lint_code::compatibility).level;
  out.code = to_string(lint_code::compatibility);
  out.field = field;
  out.message = shown(text, 1024);
  return out;
}

void print_text(std::span<const lint_finding> findings, language language, std::ostream& out) {
  for (const auto& f : findings) {
    out << shown(f.file, 4096) << ":" << f.location.line << ":" << f.location.column << ": "
        << text_of(f.level, language) << ": ";
    if (!f.kind.empty() && !f.object.name.empty())
      out << shown(f.kind) << " " << shown(f.object.to_string(), 400) << ": ";
    out << f.message << " [" << f.code << "]\n";
  }
}

nlohmann::ordered_json to_json(std::span<const lint_finding> findings) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& f : findings) {
    out.push_back({{"file", f.file},
                   {"line", f.location.line},
                   {"column", f.location.column},
                   {"severity", declarations::to_string(f.level)},
                   {"kind", f.kind},
                   {"namespace", f.object.ns},
                   {"name", f.object.name},
                   {"code", f.code},
                   {"field", f.field},
                   {"value", f.value},
                   {"allowed", f.allowed},
                   {"remedy", f.remedy},
                   {"message", f.message}});
    if (f.start_fails) out.back()["startFails"] = *f.start_fails;
  }
  return out;
}

}  // namespace cli
