// Where the CAs of the machine are.
#include "kube/authorities.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kube {
namespace {

TEST(authorities, a_file_named_by_the_environment_counts_even_where_it_is_missing) {
  ::setenv("SSL_CERT_FILE", "/nowhere/ca.pem", 1);
  EXPECT_EQ(authority_file(), "/nowhere/ca.pem");
  ::setenv("SSL_CERT_FILE", "", 1);
  EXPECT_NE(authority_file(), "/nowhere/ca.pem");
  ::unsetenv("SSL_CERT_FILE");
}

}  // namespace
}  // namespace kube
