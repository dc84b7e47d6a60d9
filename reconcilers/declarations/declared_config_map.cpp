#include "reconcilers/declarations/declared_config_map.hpp"

#include "api/names.hpp"
#include "kube/wire.hpp"
#include "reconcilers/declarations/declaration.hpp"
#include "reconcilers/declarations/verdict.hpp"

namespace reconcilers::declarations {
namespace {

/// What says that it is a declaration, and whose.
constexpr std::string_view kept_labels[] = {
    "features.alauda.io/type", "features.alauda.io/enabled", "features.cpaas.io/type", "features.cpaas.io/enabled",
    names::device_label,       api::names::managed_by_label, api::names::module_label};
constexpr std::string_view kept_annotations[] = {verdict_annotation};

}  // namespace

kube::result<declared_config_map> declared_config_map::decode(std::string_view bytes) {
  if (bytes.size() <= most_bytes) {
    auto whole = kube::config_map::decode(bytes);
    if (!whole) return std::unexpected(std::move(whole.error()));
    return declared_config_map{std::move(*whole)};
  }
  auto out = kube::wire::decode<declared_config_map>(bytes, [](std::string_view object, declared_config_map& made) {
    kube::wire::each_field(object, kube::wire::field<1>([&](std::string_view meta) {
                             kube::wire::read_metadata(meta, made, kube::keep{kept_labels},
                                                       kube::keep{kept_annotations});
                           }));
    made.left_out = object.size();
  });
  // Ours is shorter.
  if (out && out->annotations.value_or(verdict_annotation, "").size() > max_verdict_bytes) out->annotations = {};
  return out;
}

}  // namespace reconcilers::declarations
