#include "reconcilers/admission/admission_server.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/names.hpp"
#include "reconcilers/admission/compatibility.hpp"
#include "reconcilers/declarations/compiled.hpp"

namespace reconcilers {
namespace {

const kube::object_key rules_key{{}, "default"};

const review_answer not_synced{503, "not synced yet\n", "not_synced"};

controller::http_response http(review_answer review_answer) {
  return {review_answer.status, std::move(review_answer.body),
          review_answer.status == 200 ? "application/json" : "text/plain; charset=utf-8"};
}

}  // namespace

admission_server::admission_server(const controller::store<accelerator_policy>& policies,
                                   controller::store<api::compiled_rules>& rules, std::string ns,
                                   controller::registry& metrics, const controller::store<kube::node>* nodes)
    : policies_(policies),
      compiled_(rules),
      ns_(std::move(ns)),
      answers_(metrics.counters("quartermaster_admission_answers_total",
                                "Answers of the admission webhook: allowed, warned, filled, refused, malformed, "
                                "not_synced.",
                                {"webhook", "outcome"})),
      nodes_(nodes) {
  take_in(rules.find(rules_key));
  rules.observe([this](const api::compiled_rules* before, const api::compiled_rules* after) {
    const bool same = before && after && before->spec == after->spec;
    if (!same && (after ? after : before)->key == rules_key) take_in(after);
  });
}

void admission_server::take_in(const api::compiled_rules* now) {
  rules_ = now ? declarations::rules_of(nlohmann::json::parse(now->spec, nullptr, false)) : declarations::rule_set();
}

enforcement admission_server::mode() const {
  const auto* policy = policies_.find(policy_key);
  return policy ? enforcement_of(policy->resources.enforcement) : enforcement::disabled;
}

std::optional<pod_admission> admission_server::pods() const {
  if (!policies_.synced() || !compiled_.synced()) return std::nullopt;
  const auto* compiled = compiled_.find(rules_key);
  return pod_admission{rules_, mode(), ns_, compiled && compiled->sends_pods()};
}

review_answer admission_server::mutate_pod(std::string_view review) const {
  const auto pod = pods();
  return pod ? reconcilers::mutate_pod(review, *pod) : not_synced;
}

review_answer admission_server::admit_compatible(std::string_view review) const {
  if (!policies_.synced() || !nodes_ || !nodes_->synced()) return not_synced;
  const auto* policy = policies_.find(policy_key);
  cuda::admission_settings settings;
  if (policy) settings = {enforcement_of(policy->compatibility.enforcement), policy->compatibility.paddle_allocator};
  std::vector<const kube::node*> nodes;
  nodes.reserve(nodes_->size());
  for (const auto& node : nodes_->all()) nodes.push_back(&node);
  return cuda::admit_review(review, nodes, settings, ns_);
}

void admission_server::add_route(controller::http_server& server, const webhook_route& route, std::size_t body_limit,
                                 review_answer (admission_server::*by)(std::string_view) const) {
  const auto answered = [this, by, webhook = route.webhook](const controller::http_request& request) {
    auto out = (this->*by)(request.body);
    answers_.with({webhook, out.outcome}).add();
    return http(std::move(out));
  };
  server.route("POST", std::string(route.path), answered, body_limit);
}

void admission_server::add_routes(controller::http_server& server) {
  add_route(server, mutate_pods_route, max_pod_review, &admission_server::mutate_pod);
  if (nodes_) add_route(server, compatibility_route, max_pod_review, &admission_server::admit_compatible);
}

}  // namespace reconcilers
