// quartermaster version

#include <curl/curl.h>
#include <gnu/libc-version.h>
#include <openssl/crypto.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags/flags.hpp"
#include "cli/verbs.hpp"

namespace cli {

std::string version_line() { return "quartermaster " QUARTERMASTER_VERSION; }

void add_version(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "version", "Print the version and the Kubernetes versions it supports");
  auto format = std::make_shared<std::string>("text");
  add_option(*verb, "-o,--output", *format, "text or json")->check(choice({"text", "json"}));
  verb->callback([format, &rc] {
    if (*format == "json") {
      // Of the libraries that this process has loaded: a scanner cannot look into a static executable.
      const nlohmann::json libraries = {{"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
                                        {"curl", curl_version_info(CURLVERSION_NOW)->version},
                                        {"glibc", gnu_get_libc_version()}};
      const nlohmann::json out = {{"version", QUARTERMASTER_VERSION},
                                  {"kubernetes", {{"from", "1.30"}, {"to", "1.37"}}},
                                  {"libraries", libraries}};
      std::cout << out.dump() << "\n";
    } else {
      std::cout << version_line() << " (Kubernetes 1.30 to 1.37)\n";
    }
    rc = 0;
  });
}

}  // namespace cli
