// The flags of `quartermaster controller`.

#include "cli/controller/controller_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "controller/address.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

/// An environment may have it empty: then there is none.
CLI::Validator namespace_or_nothing() {
  const auto check = [](std::string& name) { return name.empty() ? std::string() : namespace_name()(name); };
  return {check, ""};
}

std::string a_registry(const std::string& name) {
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._:/") == std::string::npos &&
      !name.starts_with('/') && !name.contains("//") && !name.contains(":/"))
    return {};
  return refusal("usage.not_a_registry", text::shown(name));
}

}  // namespace

text::phrase address_problem(std::string_view flag, const std::string& address) {
  const auto read = controller::parse_address(address);
  if (address.empty() || read) return {};
  return {"usage.not_an_address", {{"name", std::string(flag)}, {"value", text::shown(address)}}};
}

void add_controller_options(CLI::App& verb, controller_options& options) {
  // Its flags are put next to the others before the command line is read (config_file.hpp); here it is only known.
  add_option(verb, "--config", options.config,
             "Read flags from this file: lines of flag=value, without the dashes; the command line wins")
      ->type_name("FILE");
  const auto text = [&verb](const char* flags, std::string& output, const char* variable, const char* help) {
    return add_option(verb, flags, output, help)->envname(variable)->capture_default_str();
  };
  text("--kubeconfig", options.kubeconfig, "QUARTERMASTER_KUBECONFIG",
       "kubeconfig file; without it $KUBECONFIG, the pod's service account, ~/.kube/config, in this order")
      ->type_name("FILE");
  text("--context", options.context, "QUARTERMASTER_CONTEXT",
       "Context of the kubeconfig; without it its current-context");
  text("-n,--namespace", options.ns, "POD_NAMESPACE",
       "Namespace of the lease and of the modules' DaemonSets; without it the namespace of the context")
      ->check(namespace_or_nothing());
  text("--pod-name", options.pod_name, "POD_NAME",
       "Our own pod, which gets the label quartermaster.io/leader=true while it leads");
  text("--declarations-namespace", options.declarations, "QUARTERMASTER_DECLARATIONS_NAMESPACE",
       "Where declarations (ConfigMaps cf-crl-*) are looked for")
      ->check(namespace_or_nothing());
  text("--policy", options.policy, "QUARTERMASTER_POLICY",
       "File with the AcceleratorPolicy of this installation, applied each time a leader starts; what it names "
       "replaces edits by hand then")
      ->type_name("FILE");
  text("--image", options.image, "QUARTERMASTER_IMAGE", "Our own image, for modules whose plugin is part of it");
  text("--image-registry", options.image_registry, "QUARTERMASTER_IMAGE_REGISTRY",
       "Registry (host/path) for images that the policy does not name: REGISTRY/nvidia/k8s-device-plugin:v... instead "
       "of "
       "that of NVIDIA, and so on; empty: the registry of each")
      ->check(a_registry);
  text("--metrics-address", options.metrics_address, "QUARTERMASTER_METRICS_ADDRESS",
       "host:port of /metrics, /healthz and /readyz; port 0 is any free one");
  add_metrics_authentication(verb, options.metrics_authentication)->envname("QUARTERMASTER_METRICS_AUTHENTICATION");
  text("--webhook-address", options.webhook_address, "QUARTERMASTER_WEBHOOK_ADDRESS",
       "host:port of the admission webhook, for API servers that cannot fill in pods themselves (below 1.36); empty: "
       "none");
  text("--webhook-url", options.webhook_url, "QUARTERMASTER_WEBHOOK_URL",
       "https://host:port where the API server reaches the webhook, outside a cluster; without it the chart's Service");
  add_flag(verb, "--view-certificate", options.view_certificate,
           "Keep the certificate of the console's aggregated API, and who trusts it (APIService)")
      ->envname("QUARTERMASTER_VIEW_CERTIFICATE");
  text("--webhook-client-ca", options.webhook_client_ca, "QUARTERMASTER_WEBHOOK_CLIENT_CA",
       "PEM file: callers of the webhook must show a certificate signed by it");
  text("--extender-address", options.extender_address, "QUARTERMASTER_EXTENDER_ADDRESS",
       "host:port of the scheduler extender (TLS: /scheduler/filter, prioritize, bind, preempt); empty: none");
  text("--predicates-address", options.predicates_address, "QUARTERMASTER_PREDICATES_ADDRESS",
       "host:port of /scheduler/predicates, plain HTTP, for schedulers set up by the old manuals; needs "
       "--extender-address; empty: none");
  text("--extender-cert-file", options.extender_cert, "QUARTERMASTER_EXTENDER_CERT_FILE",
       "PEM file with the extender's certificate, read again when it changes; without it the operator issues one");
  text("--extender-key-file", options.extender_key, "QUARTERMASTER_EXTENDER_KEY_FILE", "PEM file with its key");
  text("--extender-client-ca", options.extender_client_ca, "QUARTERMASTER_EXTENDER_CLIENT_CA",
       "PEM file: schedulers must show a certificate signed by it");
  text("--log-format", options.log_format, "QUARTERMASTER_LOG_FORMAT", "text or json, on stderr")
      ->check(choice({"text", "json"}));
  text("--log-level", options.log_level, "QUARTERMASTER_LOG_LEVEL", "debug, info, warn or error")
      ->check(choice({"debug", "info", "warn", "error"}));
  add_refusal_language(verb, options.language);
  const auto seconds = [&verb](const char* flag, int& output, const char* variable, const char* help) {
    add_option(verb, flag, output, help)->envname(variable)->check(whole_number(1, 3600))->capture_default_str();
  };
  seconds("--agent-grace", options.agent_grace_seconds, "QUARTERMASTER_AGENT_GRACE",
          "Seconds without a Ready agent for cards on a node, after which the node's report is called old");
  seconds("--usage-checkpoint", options.usage_checkpoint_seconds, "QUARTERMASTER_USAGE_CHECKPOINT",
          "Seconds between two writes of AcceleratorUsage objects; the end of a pod makes one sooner");
  seconds("--lease-duration", options.lease_seconds, "QUARTERMASTER_LEASE_DURATION",
          "Seconds that the other replicas wait after our last renewal of the lease");
  seconds("--renew-deadline", options.renew_seconds, "QUARTERMASTER_RENEW_DEADLINE",
          "Seconds without a renewal after which we stop; less than the duration");
  seconds("--retry-period", options.retry_seconds, "QUARTERMASTER_RETRY_PERIOD",
          "Seconds between two tries to get or renew the lease");
}

}  // namespace cli
