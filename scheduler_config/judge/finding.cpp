#include "scheduler_config/judge/finding.hpp"

#include <algorithm>
#include <array>

#include "scheduler_config/names.hpp"
#include "scheduler_config/url.hpp"
#include "text/text.hpp"

namespace scheduler_config {
namespace {

using text::language, text::shown;
using enum effect;

struct issue_row {
  code issue;
  std::string_view name;
  effect comes;
};

constexpr std::array<issue_row, code_count> table{{
    {code::not_yaml, "not_yaml", ends},
    {code::not_json, "not_json", ends},
    {code::no_kind, "no_kind", ends},
    {code::other_kind, "other_kind", ends},
    {code::policy, "policy", ends},
    {code::api_version_removed, "api_version_removed", ends},
    {code::api_version_unknown, "api_version_unknown", ends},
    {code::written_twice, "written_twice", ends},
    {code::merged_twice, "merged_twice", ends},
    {code::field_misplaced, "field_misplaced", ends},
    {code::field_unknown, "field_unknown", ends},
    {code::field_of_other_version, "field_of_other_version", ends},
    {code::algorithm_source, "algorithm_source", ends},
    {code::config_map_without, "config_map_without", ends},
    {code::wrong_type, "wrong_type", ends},
    {code::not_a_duration, "not_a_duration", ends},
    {code::not_base64, "not_base64", ends},
    {code::value_refused, "value_refused", ends},
    {code::scheduler_name_missing, "scheduler_name_missing", ends},
    {code::scheduler_name_twice, "scheduler_name_twice", ends},
    {code::resource_lock, "resource_lock", ends},
    {code::lease_times, "lease_times", ends},
    {code::backoff_order, "backoff_order", ends},
    {code::weight_zero, "weight_zero", ends},
    {code::two_binders, "two_binders", ends},
    {code::managed_twice, "managed_twice", ends},
    {code::managed_name, "managed_name", ends},
    {code::plugin_unknown, "plugin_unknown", ends},
    {code::plugin_removed, "plugin_removed", ends},
    {code::plugin_point, "plugin_point", ends},
    {code::plugin_twice, "plugin_twice", ends},
    {code::plugin_set, "plugin_set", ends},
    {code::plugin_without_args, "plugin_without_args", ends},
    {code::queue_sort, "queue_sort", ends},
    {code::plugin_config_twice, "plugin_config_twice", ends},
    {code::args_of_other_kind, "args_of_other_kind", ends},
    {code::insecure_with_ca, "insecure_with_ca", ends},
    {code::certificate_not_pem, "certificate_not_pem", ends},
    {code::key_of_other_certificate, "key_of_other_certificate", ends},
    {code::no_kubeconfig, "no_kubeconfig", ends},
    {code::flag_with_one_dash, "flag_with_one_dash", ends},
    {code::flag_removed, "flag_removed", ends},
    {code::flag_gone, "flag_gone", ends},
    {code::flag_unknown, "flag_unknown", ends},
    {code::flag_of_other_version, "flag_of_other_version", ends},
    {code::flag_value, "flag_value", ends},
    {code::flag_without_value, "flag_without_value", ends},
    {code::flag_ends, "flag_ends", ends},
    {code::argument, "argument", ends},
    {code::words_in_one, "words_in_one", ends},
    {code::gate_unknown, "gate_unknown", ends},
    {code::gate_of_other_version, "gate_of_other_version", ends},
    {code::gate_locked, "gate_locked", ends},
    {code::gate_dependency, "gate_dependency", ends},
    {code::file_not_mounted, "file_not_mounted", ends},
    {code::no_config_flag, "no_config_flag", idle},
    {code::placeholder_left, "placeholder_left", idle},
    {code::url_folded, "url_folded", idle},
    {code::url_cut, "url_cut", idle},
    {code::url_malformed, "url_malformed", idle},
    {code::url_of_service_name, "url_of_service_name", idle},
    {code::service_proxy_without_certificate, "service_proxy_without_certificate", idle},
    {code::not_offered_not_ignored, "not_offered_not_ignored", idle},
    {code::lease_name_malformed, "lease_name_malformed", idle},
    {code::extender_lost, "extender_lost", idle},
    {code::kubelet_client_certificate, "kubelet_client_certificate", risk},
    {code::service_proxy_rights, "service_proxy_rights", risk},
    {code::single_api_server, "single_api_server", risk},
    {code::https_without_ca, "https_without_ca", risk},
    {code::managed_incomplete, "managed_incomplete", risk},
    {code::scheduler_name_malformed, "scheduler_name_malformed", risk},
    {code::pod_not_replaced, "pod_not_replaced", risk},
    {code::image_of_other_version, "image_of_other_version", risk},
    {code::shell_not_followed, "shell_not_followed", risk},
    {code::flags_not_judged, "flags_not_judged", risk},
    {code::more_documents, "more_documents", risk},
    {code::no_safe_place, "no_safe_place", idle},
    {code::managed_by_another, "managed_by_another", idle},
    {code::bound_by_another, "bound_by_another", idle},
    {code::profile_there, "profile_there", idle},
    {code::profile_without_name, "profile_without_name", idle},
    {code::config_flag_there, "config_flag_there", idle},
    {code::nothing_of_ours, "nothing_of_ours", idle},
    {code::ours_was_edited, "ours_was_edited", idle},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i].issue != static_cast<code>(i)) return false;
      }
      return true;
    }(),
    "one row a code, in the order of the enumeration");

const issue_row& row_of(code c) { return table[static_cast<std::size_t>(c)]; }

/// What the parts of a verdict put into the words, in Chinese; all else are names and numbers.
constexpr std::pair<std::string_view, std::string_view> phrases[] = {
    {"a list", "列表"},
    {"a mapping", "映射"},
    {"missing", "空"},
    {"text", "文本"},
    {"true or false", "true 或 false"},
    {"a number", "数字"},
    {"a whole number", "整数"},
    {"a whole number of 32 bits", "32 位整数"},
    {"a whole number without fraction or exponent", "不带小数部分和指数的整数"},
    {"base64 text", "base64 文本"},
    {"the same extender", "同一个扩展"},
    {"1 or more", "不小于 1"},
    {"0 or more", "不小于 0"},
    {"0 or 1", "0 或 1"},
    {"0 to 100", "0 到 100"},
    {"0 to 10", "0 到 10"},
    {"1 to 100", "1 到 100"},
    {"1s or more", "不小于 1s"},
    {"more than 0", "大于 0"},
    {"renewDeadline more than 1.2 times retryPeriod", "renewDeadline 大于 retryPeriod 的 1.2 倍"},
    {"each resource once", "每个资源一次"},
    {"one or more", "一个或多个"},
    {"one point or more", "一个或多个点"},
    {"none", "无"},
    {"exactly one", "恰好一个"},
    {"exactly one whole number, in quotes", "恰好一个整数，写在引号中"},
    {"values of a node label", "节点标签的值"},
    {"the key of a node label", "节点标签的键"},
    {"more than the point before", "大于前一个点"},
    {"with requestedToCapacityRatio", "同时填写 requestedToCapacityRatio"},
    {"only for type RequestedToCapacityRatio", "仅用于 type: RequestedToCapacityRatio"},
    {"none, or defaultingType: List", "无，或 defaultingType: List"},
    {"nothing: each pod's own is used", "不填写：使用各 Pod 自己的"},
    {"nothing before Kubernetes 1.36", "Kubernetes 1.36 之前不填写"},
    {"a whole number, 0 or more", "不小于 0 的整数"},
    {"a number with a unit: 5s, 500ms, 1m30s", "带单位的数字：5s、500ms、1m30s"},
    {"an IP address", "IP 地址"},
    {"0 to 65535", "0 到 65535"},
    {"a number of bytes: 512, 3M, 5Mi", "字节数：512、3M、5Mi"},
    {"METRIC,LABEL=VALUE", "指标,标签=值"},
    {"PATTERN=N, separated by commas", "模式=N，以逗号分隔"},
    {"CERTIFICATE,KEY", "证书,私钥"},
    {"names separated by commas, none of them blank", "以逗号分隔的名称，均不为空"},
    {"a name", "名称"},
    {"leaseDuration more than renewDeadline", "leaseDuration 大于 renewDeadline"},
    {"json with the feature gate LoggingBetaOptions", "启用特性门控 LoggingBetaOptions 时才可为 json"},
    {"nothing with --logging-format=json", "使用 --logging-format=json 时不填写"},
    {"with the feature gate LoggingAlphaOptions alone", "仅在启用特性门控 LoggingAlphaOptions 时"},
    {"with the feature gate RemoteRequestHeaderUID alone", "仅在启用特性门控 RemoteRequestHeaderUID 时"},
    {"X-Remote-Uid among them", "其中包含 X-Remote-Uid"},
    {"names that kube-scheduler --help lists", "kube-scheduler --help 列出的名称"},
    {"* at the end of a path alone", "* 只能在路径末尾"},
    {"GATE=true or GATE=false", "门控=true 或 门控=false"},
    {"kube: before every gate, or before none", "所有门控前都写 kube:，或都不写"},
    {"a domain without a slash", "不带斜杠的域名"},
    {fault_of_port, "端口不在 1 到 65535 之内"},
    {fault_of_host, "主机既不是 DNS 名称，也不是 IP 地址"},
    {fault_of_address, "含有 URL 中不允许的内容"},
    {a_lease_name, "小写 DNS 名称：字母、数字、- 与 .，首尾为字母或数字"},
    {a_namespace_name, "小写字母、数字与 -，首尾为字母或数字，最多 63 个字符"},
    {a_scheduler_name, "字母、数字、-、_ 与 .，首尾为字母或数字，最多 63 个字符；前面可加 域名/"},
};
std::string said(const std::string& text, language locale) {
  const auto* match = std::ranges::find(phrases, text, &std::pair<std::string_view, std::string_view>::first);
  return locale == language::zh && match != std::end(phrases) ? std::string(match->second) : text;
}

}  // namespace

std::string_view to_string(code c) noexcept { return row_of(c).name; }
effect effect_of(code c) noexcept { return row_of(c).comes; }
text::severity severity_of(code c) noexcept {
  return effect_of(c) == risk ? text::severity::warning : text::severity::error;
}
bool any_ends(std::span<const finding> findings) noexcept {
  return std::ranges::any_of(findings, [](const finding& finding) { return effect_of(finding.issue) == ends; });
}

text::fact fact_of(const finding& finding, language locale) {
  return {.table = "scheduler_config",
          .code = to_string(finding.issue),
          .level = severity_of(finding.issue),
          .location = finding.location,
          .parameters = {{"field", finding.field},
                         {"value", said(shown(finding.value, 200), locale)},
                         {"other", said(shown(finding.other, 240), locale)},
                         {"allowed", said(finding.allowed, locale)},
                         {"hint", shown(finding.hint, 400)}}};
}

std::string wrong_of(const finding& finding, language locale) { return wrong_of(fact_of(finding, locale), locale); }
std::string allowed_of(const finding& finding, language locale) { return allowed_of(fact_of(finding, locale), locale); }
std::string remedy_of(const finding& finding, language locale) { return remedy_of(fact_of(finding, locale), locale); }
std::string message_of(const finding& finding, language locale) { return message_of(fact_of(finding, locale), locale); }

}  // namespace scheduler_config
