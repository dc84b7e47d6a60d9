#pragma once
// The certificate of the console's aggregated API as a part of the program, made only with --view-certificate.

#include "cli/controller/ground.hpp"
#include "controller/parts.hpp"
#include "controller/store.hpp"
#include "reconcilers/views/view_certificates.hpp"

namespace cli {

class view_part {
 public:
  explicit view_part(const ground& ground);

  void join(controller::parts& parts);

 private:
  ground ground_;
  controller::store<reconcilers::webhook_secret> secrets_;
  controller::store<reconcilers::api_service> services_;
  reconcilers::view_certificates certificates_;
};

}  // namespace cli
