// Any bytes as an AdmissionReview, at each of the three routes: never a crash, never a 200 that is no review or has
// another uid than was asked, never an answer beyond its bounds. Half of the inputs are put inside a sound review, as
// its object or as a part of it, so that what is deep inside is reached.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kube/config.hpp"
#include "reconcilers/admission/admission.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "text/text.hpp"

namespace {

using namespace reconcilers;
using nlohmann::json;

void require(bool holds) {
  if (!holds) std::abort();
}

const declarations::rule_set& rules() {
  static const declarations::rule_set made = [] {
    declarations::rule_set out;
    declarations::rule card, memory;
    card.key = "a.b/c";
    card.group = memory.group = "g";
    card.excluded = {"a.b/x"};
    card.related = {"a.b/y"};
    card.runtime_class = "lab";
    memory.key = "a.b/m";
    memory.must = true;
    memory.fill = 8;
    out.rules = {card, memory};
    out.groups = {{"g", {"a.b/c", "a.b/m"}}};
    return out;
  }();
  return made;
}

constexpr std::string_view head =
    R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",)";

std::string review_around(std::uint8_t way, std::string_view input) {
  const std::string text(input);
  const std::string in_pod = R"("kind":{"kind":"Pod"},"operation":"CREATE","namespace":"n","object":)";
  const std::string in_map =
      R"("kind":{"kind":"ConfigMap"},"operation":"UPDATE","namespace":"kube-public","oldObject":{},"object":)";
  switch (way % 6) {
    case 0:
      return std::string(head) + in_pod + text + "}}";
    case 1:
      return std::string(head) + in_pod + R"({"spec":{"containers":[)" + text + "]}}}}";
    case 2:
      return std::string(head) + in_pod + R"({"spec":{"containers":[{"name":"m","resources":{"limits":{"a.b/c":"1",)" +
             text + "}}}]}}}}";
    case 3:
      return std::string(head) + in_map + text + "}}";
    case 4:
      return std::string(head) + in_map +
             R"({"metadata":{"labels":{"features.cpaas.io/type":"CustomResourceLimitation"}},"data":{)" + text + "}}}}";
    default:
      return text;
  }
}

void check(const review_answer& answer) {
  require(answer.status == 200 || answer.status == 400);
  if (answer.status == 400) {
    require(answer.body.size() < 2000 && answer.body.find('\n') == answer.body.size() - 1);
    require(text::is_plain_text(answer.body));
    return;
  }
  const auto body = json::parse(answer.body, nullptr, false);
  require(body.is_object() && body["kind"] == "AdmissionReview");
  const auto& response = body["response"];
  require(response["uid"].is_string() && !response["uid"].get<std::string>().empty());
  require(response["allowed"].is_boolean());
  require(response["allowed"] == true || response["status"]["code"] == 403);
  std::size_t bytes = 0;
  for (const auto& entry : response.value("warnings", json::array())) {
    require(entry.get<std::string>().size() <= 256 && text::is_plain_text(entry.get<std::string>()));
    bytes += entry.get<std::string>().size();
  }
  require(bytes <= 4096);
  if (response.contains("patch"))
    require(json::parse(kube::base64_decode(response["patch"].get<std::string>()).value_or("")).is_array());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes + 1), size - 1);
  const auto review = review_around(bytes[0], input);
  const auto mode = bytes[0] & 64 ? enforcement::warn : enforcement::deny;
  const pod_admission pod_admission{rules(), mode, "own"};
  check(mutate_pod(review, pod_admission));
  return 0;
}
