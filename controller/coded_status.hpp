#pragma once
// Applies a status whose messages have codes (coded_message.hpp). A CRD of an earlier version lacks the fields `cause`,
// `parameters` and `blockerCauses`, and the API server then refuses the whole status. It is applied again without them,
// so that an operator next to old CRDs does all its work, and readers show the message itself. Every status is first
// tried with codes: they come with the next change after the CRDs are new.

#include <nlohmann/json_fwd.hpp>

#include "kube/client.hpp"

namespace controller {

class coded_status {
 public:
  kube::task<nlohmann::json> apply(kube::client& api, kube::resource type, kube::object_key key, nlohmann::json object,
                                   kube::write_options options);
  /// The last status was taken without codes only: what is read back has none.
  bool lacks_codes() const noexcept { return lacks_codes_; }

 private:
  bool lacks_codes_ = false;
};

/// The same without these fields, at any depth.
nlohmann::json without_codes(nlohmann::json status);

}  // namespace controller
