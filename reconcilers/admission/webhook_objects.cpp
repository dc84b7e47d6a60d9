#include "reconcilers/admission/webhook_objects.hpp"

#include "kube/wire.hpp"

namespace reconcilers {
namespace {

namespace wire = kube::wire;
using wire::each_field, wire::field;

void read_data(std::string_view entry, controller::authority_keys& authority_keys) {
  const auto [name, value] = wire::read_entry(entry);
  if (name == names::webhook_authorities) authority_keys.authorities = value;
  if (name == names::webhook_signer_key) authority_keys.signer_key = value;
  if (name == names::webhook_certificate) authority_keys.leaf.certificate = value;
  if (name == names::webhook_key) authority_keys.leaf.key = value;
}

webhook_entry read_entry(std::string_view bytes) {
  webhook_entry out;
  each_field(bytes, field<1>(out.name), field<2>([&](std::string_view client) {
               each_field(client, field<2>(out.authorities), field<3>(out.url));
             }));
  return out;
}

}  // namespace

kube::result<webhook_secret> webhook_secret::decode(std::string_view bytes) {
  return wire::decode<webhook_secret>(bytes, [](std::string_view whole, webhook_secret& made) {
    each_field(whole, field<1>([&](std::string_view meta) {
                 wire::read_metadata(meta, made, kube::keep_all, kube::keep_none);
               }),
               field<2>([&](std::string_view entry) { read_data(entry, made.keys); }));
  });
}

kube::result<mutating_webhooks> mutating_webhooks::decode(std::string_view bytes) {
  return wire::decode<mutating_webhooks>(bytes, [](std::string_view whole, mutating_webhooks& made) {
    each_field(whole, field<1>([&](std::string_view meta) {
                 wire::read_metadata(meta, made, kube::keep_all, kube::keep_none);
               }),
               field<2>([&](std::string_view webhook) { made.webhooks.push_back(read_entry(webhook)); }));
  });
}

}  // namespace reconcilers
