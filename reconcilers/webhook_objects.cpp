#include "reconcilers/webhook_objects.hpp"

#include "kube/wire.hpp"

namespace reconcilers {
namespace {

namespace wire = kube::wire;
using wire::bytes_field, wire::reader, wire::text;

reader inside(std::string_view message) { return {message.data(), message.size()}; }

void read_data(std::string_view entry, controller::authority_keys& into) {
  const auto [name, value] = wire::read_entry(entry);
  if (name == names::webhook_authorities) into.authorities = value;
  if (name == names::webhook_signer_key) into.signer_key = value;
  if (name == names::webhook_certificate) into.leaf.certificate = value;
  if (name == names::webhook_key) into.leaf.key = value;
}

webhook_entry read_entry(std::string_view bytes) {
  webhook_entry out;
  auto message = inside(bytes);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        out.name = text(message);
        break;
      case bytes_field(2): {
        auto client = inside(text(message));
        while (client.next()) {
          if (client.tag_and_type() == bytes_field(2))
            out.authorities = text(client);
          else if (client.tag_and_type() == bytes_field(3))
            out.url = text(client);
          else
            client.skip();
        }
        break;
      }
      default:
        message.skip();
    }
  }
  return out;
}

}  // namespace

kube::result<webhook_secret> webhook_secret::decode(std::string_view bytes) {
  webhook_secret made;
  const auto done = wire::guarded("protobuf", [&] {
    auto message = inside(bytes);
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes_field(1):
          wire::read_metadata(text(message), made, kube::keep_all, kube::keep_none);
          break;
        case bytes_field(2):
          read_data(text(message), made.keys);
          break;
        default:
          message.skip();
      }
    }
  });
  return wire::named(std::move(made), done);
}

kube::result<std::vector<webhook_entry>> read_webhooks(std::string_view kind, std::string_view bytes,
                                                       kube::object& into) {
  auto read = wire::guarded(std::string(kind), [&] {
    std::vector<webhook_entry> out;
    auto message = inside(bytes);
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes_field(1):
          wire::read_metadata(text(message), into, kube::keep_all, kube::keep_none);
          break;
        case bytes_field(2):
          out.push_back(read_entry(text(message)));
          break;
        default:
          message.skip();
      }
    }
    return out;
  });
  if (read && into.key.name.empty())
    return std::unexpected(kube::error{kube::errc::decode, 0, std::string(kind) + " without a name", {}});
  return read;
}

}  // namespace reconcilers
