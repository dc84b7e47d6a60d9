#include "scheduler_config/flags/flag_table.hpp"

#include <algorithm>
#include <iterator>

namespace scheduler_config {
namespace {

using enum flag_type;

constexpr std::string_view tls_versions = "VersionTLS10|VersionTLS11|VersionTLS12|VersionTLS13";
constexpr std::string_view cipher_names =
    "TLS_AES_128_GCM_SHA256|TLS_AES_256_GCM_SHA384|TLS_CHACHA20_POLY1305_SHA256|TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA|"
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256|TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA|"
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384|TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305|"
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256|TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA|"
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256|TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA|TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384|"
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305|TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256|"
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256|TLS_ECDHE_ECDSA_WITH_RC4_128_SHA|TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA|"
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256|TLS_ECDHE_RSA_WITH_RC4_128_SHA|TLS_RSA_WITH_3DES_EDE_CBC_SHA|"
    "TLS_RSA_WITH_AES_128_CBC_SHA|TLS_RSA_WITH_AES_128_CBC_SHA256|TLS_RSA_WITH_AES_128_GCM_SHA256|"
    "TLS_RSA_WITH_AES_256_CBC_SHA|TLS_RSA_WITH_AES_256_GCM_SHA384|TLS_RSA_WITH_RC4_128_SHA";

constexpr flag_rule rules[] = {
    {"allow-metric-labels", labels},
    {"allow-metric-labels-manifest", text},
    {"authentication-kubeconfig", text},
    {"authentication-skip-lookup", boolean},
    {"authentication-token-webhook-cache-ttl", duration},
    {"authentication-tolerate-lookup-failure", boolean},
    {"authorization-always-allow-paths", texts},
    {"authorization-kubeconfig", text},
    {"authorization-webhook-cache-authorized-ttl", duration},
    {"authorization-webhook-cache-unauthorized-ttl", duration},
    {"bind-address", ip},
    {"cert-dir", text},
    {"client-ca-file", text},
    {"config", text},
    {"contention-profiling", boolean},
    {"disable-http2-serving", boolean, 31},
    {"disabled-metrics", texts},
    {"emulated-version", texts, 31},
    {"feature-gates", gates},
    {"help", boolean},
    {"http2-max-streams-per-connection", int64},
    {"kube-api-burst", int32},
    {"kube-api-content-type", text},
    {"kube-api-qps", real},
    {"kubeconfig", text},
    {"leader-elect", boolean},
    {"leader-elect-lease-duration", duration},
    {"leader-elect-renew-deadline", duration},
    {"leader-elect-resource-lock", choice, 0, 99, "leases"},
    {"leader-elect-resource-name", text},
    {"leader-elect-resource-namespace", text},
    {"leader-elect-retry-period", duration},
    {"log-flush-frequency", duration},
    {"log-json-info-buffer-size", quantity},
    {"log-json-split-stream", boolean},
    {"log-text-info-buffer-size", quantity},
    {"log-text-split-stream", boolean},
    {"logging-format", choice, 0, 99, "text|json"},
    {"master", text},
    {"min-compatibility-version", texts, 35},
    {"permit-address-sharing", boolean},
    {"permit-port-sharing", boolean},
    {"pod-max-in-unschedulable-pods-duration", duration},
    {"profiling", boolean},
    {"requestheader-allowed-names", header_names},
    {"requestheader-client-ca-file", text},
    {"requestheader-extra-headers-prefix", header_names},
    {"requestheader-group-headers", header_names},
    {"requestheader-uid-headers", header_names, 32},
    {"requestheader-username-headers", header_names},
    {"secure-port", port},
    {"show-hidden-metrics-for-version", older_version},
    {"tls-cert-file", text},
    {"tls-cipher-suites", ciphers, 0, 99, cipher_names},
    {"tls-curve-preferences", curves, 36},
    {"tls-min-version", choice, 0, 99, tls_versions},
    {"tls-private-key-file", text},
    {"tls-sni-cert-key", key_pair},
    {"v", level},
    {"version", version},
    {"vmodule", module_levels},
    {"write-config-to", text},
};

constexpr std::string_view policy = "--config=/etc/kubernetes/scheduler-config.yaml";
constexpr gone_flag gone[] = {
    {"address", 24, "--bind-address="},
    {"port", 24, "--secure-port="},
    {"algorithm-provider", 22, policy},
    {"policy-config-file", 23, policy},
    {"policy-configmap", 23, policy},
    {"policy-configmap-namespace", 23, policy},
    {"use-legacy-policy-config", 23, policy},
    {"scheduler-name", 22, "", term::name_in_profile},
    {"hard-pod-affinity-symmetric-weight", 22, "", term::weight_in_plugin},
    {"lock-object-name", 28, "--leader-elect-resource-name="},
    {"lock-object-namespace", 28, "--leader-elect-resource-namespace="},
    {"experimental-logging-sanitization", 24},
    {"add-dir-header", 26},
    {"alsologtostderr", 26},
    {"log-backtrace-at", 26},
    {"log-dir", 26},
    {"log-file", 26},
    {"log-file-max-size", 26},
    {"logtostderr", 26},
    {"one-output", 26},
    {"skip-headers", 26},
    {"skip-log-headers", 26},
    {"stderrthreshold", 26},
};

}  // namespace

std::span<const flag_rule> flag_rules() noexcept { return rules; }
const flag_rule* flag_rule_of(std::string_view name) noexcept {
  const auto* match = std::ranges::find(rules, name, &flag_rule::name);
  return match == std::end(rules) ? nullptr : match;
}
const gone_flag* gone_flag_of(std::string_view name) noexcept {
  const auto* match = std::ranges::find(gone, name, &gone_flag::name);
  return match == std::end(gone) ? nullptr : match;
}

}  // namespace scheduler_config
