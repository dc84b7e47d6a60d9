#pragma once
// The first step of the executable for people's own machines. It is linked statically (docs/decisions/011), and what it
// would load from the machine is built for another glibc and would crash.

#include <netdb.h>
#include <nss.h>
#include <openssl/crypto.h>

namespace cli {

/// Call it before any other thread runs. Names are then looked up in /etc/hosts and by DNS, whatever other modules
/// /etc/nsswitch.conf names, and OpenSSL reads no configuration, which can name modules as well.
inline void load_no_modules() {
  __nss_configure_lookup("hosts", "files dns");
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

}  // namespace cli
