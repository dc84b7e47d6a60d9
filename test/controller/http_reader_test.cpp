#include "controller/http_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using controller::http_head;
using controller::http_reading;

constexpr std::size_t head_limit = 1000, body_limit = 2000;

struct caller {
  controller::http_reader under_test{head_limit};
  bool in_body = false;
  std::vector<http_head> heads;
  std::vector<std::string> bodies;
  std::size_t taken = 0;

  /// Sends in pieces of `piece`, as much as is wanted.
  http_reading send(std::string_view bytes, std::size_t piece = 1u << 20) {
    for (;;) {
      const auto state = in_body ? under_test.read_body(body_limit) : under_test.read_head();
      if (state == http_reading::done) {
        if (in_body) bodies.push_back(under_test.take_body());
        if (!in_body) heads.push_back(under_test.head());
        in_body = !in_body;
        continue;
      }
      if (state != http_reading::more || bytes.empty()) return state;
      const auto room = under_test.room();
      const auto size = std::min({room.size(), bytes.size(), piece});
      std::copy_n(bytes.begin(), size, room.begin());
      under_test.received(size);
      bytes.remove_prefix(size);
      taken += size;
    }
  }
  /// The same bytes for as long as they are taken, up to 64 MiB.
  http_reading send_for_ever(const std::string& bytes) {
    auto state = http_reading::more;
    while (state == http_reading::more && taken < (64u << 20)) {
      state = send(bytes);
      most = std::max(most, under_test.held());
    }
    return state;
  }
  std::size_t most = 0;
};

struct http_reader : testing::Test, caller {};

const std::string chunked_request = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST_F(http_reader, keeps_what_servers_for_people_read_of_the_header) {
  send("GET / HTTP/1.1\r\nHost: a\r\nCookie: one=1; two=2\r\nSec-Fetch-Site: same-site\r\nX-Other: y\r\n\r\n");
  ASSERT_EQ(heads.size(), 1u);
  EXPECT_EQ(heads[0].fields.cookie, "one=1; two=2");
  EXPECT_EQ(heads[0].fields.fetch_site, "same-site");
}

TEST_F(http_reader, keeps_whom_a_proxy_speaks_for_in_order_and_as_often_as_it_came) {
  send(
      "GET / HTTP/1.1\r\nHost: a\r\nX-Remote-User: ann\r\nx-remote-group: one\r\nX-Remote-: empty\r\n"
      "X-REMOTE-GROUP: two\r\nX-Remoted: no\r\nX-Remote-Extra-Scopes%2fa: b\r\n\r\n");
  ASSERT_EQ(heads.size(), 1u);
  using field = std::pair<std::string, std::string>;
  EXPECT_EQ(heads[0].fields.remote, (std::vector<field>{{"x-remote-user", "ann"},
                                                        {"x-remote-group", "one"},
                                                        {"x-remote-group", "two"},
                                                        {"x-remote-extra-scopes%2fa", "b"}}));
}

TEST_F(http_reader, two_cookies_or_two_sites_are_malformed) {
  for (const char* field : {"Cookie: a=1\r\nCookie: a=2", "Sec-Fetch-Site: none\r\nsec-fetch-site: cross-site"}) {
    caller each;
    EXPECT_EQ(each.send("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(field) + "\r\n\r\n"), http_reading::malformed)
        << field;
  }
}

TEST_F(http_reader, reads_requests_one_after_the_other_however_they_are_cut) {
  const std::string both =
      "POST /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nxyz" + chunked_request +
      "2;why=not\r\nab\r\n3\r\ncde\r\n0\r\nTrailer: t\r\n\r\nGET /b HTTP/1.0\r\n\r\n";
  for (std::size_t piece = 1; piece < both.size(); ++piece) {
    heads.clear();
    bodies.clear();
    ASSERT_EQ(send(both, piece), http_reading::more) << piece;
    ASSERT_EQ(bodies, (std::vector<std::string>{"xyz", "abcde", ""})) << piece;
    EXPECT_TRUE(under_test.empty());
    EXPECT_FALSE(under_test.begun());
  }
  EXPECT_EQ(heads[0].method, "POST");
  EXPECT_EQ(heads[0].path, "/a");
  EXPECT_EQ(heads[0].query, "b=c");
  EXPECT_EQ(heads[0].content_type, "text/plain");
  EXPECT_EQ(heads[0].length, 3U);
  EXPECT_TRUE(heads[0].has_body && heads[0].keep_alive);
  EXPECT_TRUE(heads[1].has_body && !heads[1].length);
  EXPECT_FALSE(heads[2].has_body || heads[2].keep_alive);
  EXPECT_EQ(heads[2].version, 10U);
}

// One line without an end took all memory: Beast uses nothing of a line before its end is there.
TEST_F(http_reader, F38_what_comes_besides_the_body_has_a_limit_from_its_first_byte) {
  struct row {
    std::string opening, flood;
    http_reading end;
  };
  const std::string x(512, 'x');
  const row rows[] = {
      {chunked_request + "1;", x, http_reading::malformed},
      {chunked_request + "1\r\na\r\n1;" + x.substr(0, 100) + "=\"", x, http_reading::malformed},
      {chunked_request + "0\r\na: ", x, http_reading::malformed},
      {chunked_request + "0\r\n", "a: b\r\n", http_reading::malformed},
      {"GET /" + x, x, http_reading::head_too_large},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: ", x, http_reading::head_too_large},
      {"GET / HTTP/1.1\r\nHost: a\r\n", "a: b\r\n", http_reading::head_too_large},  // each line comes whole
      {chunked_request, "1\r\na\r\n", http_reading::body_too_large},
      {chunked_request, "1;" + x + "\r\na\r\n", http_reading::body_too_large},
      {chunked_request + "fffffff\r\n", x, http_reading::body_too_large},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", x, http_reading::body_too_large},
  };
  for (const auto& [opening, flood, end] : rows) {
    caller fresh;
    EXPECT_EQ(fresh.send(opening), end == http_reading::body_too_large && flood == x ? end : http_reading::more)
        << opening;
    EXPECT_EQ(fresh.send_for_ever(flood), end) << opening;
    EXPECT_LT(fresh.most, 100'000U) << opening;
  }
}

// RFC 9112, 6.1, 6.3, 3.2, 5.1 and 11.2. Two readers would see another end of the request, or another request.
TEST_F(http_reader, F38_what_could_be_two_requests_is_none) {
  const char* forms[] = {
      "Host: a\r\nTransfer-Encoding: gzip\r\n",
      "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n",
      "Host: a\r\nTransfer-Encoding: chunked, gzip\r\n",
      "Host: a\r\nTransfer-Encoding: identity\r\n",
      "Host: a\r\nTransfer-Encoding: \r\n",
      "Host: a\r\nTransfer-Encoding: xchunked\r\n",
      "Host: a\r\nTransfer-Encoding: \"chunked\"\r\n",
      "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
      "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
      "Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
      "Host: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
      "Host: a\r\nContent-Length: 5, 6\r\n",
      "Host: a\r\nContent-Length: +5\r\n",
      "Host: a\r\nContent-Length: -5\r\n",
      "Host: a\r\nContent-Length: 0x5\r\n",
      "Host: a\r\nContent-Length: 5 5\r\n",
      "Host: a\r\nContent-Length: \r\n",
      "Host: a\r\nContent-Length: 99999999999999999999999\r\n",
      "Host: a\r\nTransfer-Encoding : chunked\r\n",
      "Host: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 1\r\n: x\r\n",
      "Host: a\nContent-Length: 5\r\n",
      "Host: a\r\nContent-Length: 5\rX: y\r\n",
      "Content-Length: 0\r\n",
      "Host: a\r\nHost: b\r\nContent-Length: 0\r\n",
  };
  for (const auto* form : forms) {
    caller fresh;
    EXPECT_EQ(fresh.send("POST /x HTTP/1.1\r\n" + std::string(form) + "\r\n"), http_reading::malformed) << form;
    EXPECT_TRUE(fresh.heads.empty()) << form;
  }
  for (const auto* whole :
       {"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "GET /x HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET /x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n", "\r\n\r\n\r\nGET"}) {
    caller fresh;
    EXPECT_EQ(fresh.send(whole), http_reading::malformed) << whole;
  }
  for (const auto* body :
       {"5\nabcde\r\n0\r\n\r\n", "5\r\nabcdeX0\r\n\r\n", "-1\r\n", "0x5\r\nabcde\r\n0\r\n\r\n",
        "5 \r\nabcde\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "\r\n0\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\n"}) {
    caller fresh;
    const auto end = fresh.send(chunked_request + body);
    EXPECT_TRUE(end == http_reading::malformed || end == http_reading::body_too_large) << body;
    EXPECT_TRUE(fresh.bodies.empty()) << body;
  }
}

// Boost.Beast 1.81, basic_parser.ipp: BOOST_ASSERT(n >= 5) when the end of a body comes byte by byte.
TEST_F(http_reader, an_empty_chunked_body_may_come_byte_by_byte) {
  EXPECT_EQ(send(chunked_request + "0\r\n\r\n" + chunked_request + "0\r\na: b\r\n\r\n" + chunked_request +
                     "1\r\na\r\n0\r\n\r\n",
                 1),
            http_reading::more);
  EXPECT_EQ(bodies, (std::vector<std::string>{"", "", "a"}));
  EXPECT_TRUE(under_test.empty());
}

TEST_F(http_reader, a_claimed_length_takes_nothing_before_bytes_come) {
  controller::http_reader large(head_limit);
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc";
  const auto room = large.room();
  std::ranges::copy(head, room.begin());
  large.received(head.size());
  ASSERT_EQ(large.read_head(), http_reading::done);
  ASSERT_EQ(large.read_body(1u << 20), http_reading::more);
  EXPECT_EQ(large.body_size(), 3U);
}

}  // namespace
