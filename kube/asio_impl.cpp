// Boost.Asio and its SSL part, compiled once for the whole program (BOOST_ASIO_SEPARATE_COMPILATION).

#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
