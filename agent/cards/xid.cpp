#include "agent/cards/xid.hpp"

#include <algorithm>

namespace agent::cards {
namespace {

struct fatal_xid {
  std::uint64_t number;
  std::string_view name;
};
/// Their action is RESET_GPU, RESTART_BM, RESTART_VM, or a workflow that begins with draining the node (48, 74, 144 to
/// 150). NVIDIA's device plugin ignores 109; the catalog asks for a reset.
constexpr fatal_xid fatal[] = {
    {46, "the card does not answer in time"},
    {48, "double-bit ECC error"},
    {62, "the power management unit has stopped"},
    {64, "a row of memory could not be replaced"},
    {74, "NVLink error"},
    {79, "fallen off the bus"},
    {95, "uncontained ECC error"},
    {109, "context switch timed out"},
    {110, "security fault"},
    {119, "the GPU system processor does not answer"},
    {120, "error of the GPU system processor"},
    {136, "link training failed"},
    {140, "unrecovered ECC error"},
    {143, "the card could not be initialised"},
    {144, "NVLink error (SAW)"},
    {145, "NVLink error (RLW)"},
    {146, "NVLink error (TLW)"},
    {147, "NVLink error (TREX)"},
    {148, "NVLink error (NVLPW)"},
    {149, "NVLink error (NETIR)"},
    {150, "NVLink error (MSE)"},
    {151, "key rotation failed"},
    {155, "NVLink error found by software"},
    {156, "a resource of the card was retired"},
    {158, "fatal time-out of the card"},
    {160, "a memory channel was retired"},
};

struct xid_range {
  std::uint64_t first, last;
};
/// Their action is RESTART_APP; 43 and 45 follow the end of a program, which 45 repeats for each of its channels.
constexpr xid_range application[] = {{8, 8},   {11, 11}, {13, 13},  {25, 25},   {31, 32},  {39, 41},
                                     {43, 45}, {60, 60}, {68, 72},  {75, 77},   {80, 80},  {82, 86},
                                     {88, 89}, {94, 94}, {96, 105}, {126, 135}, {139, 139}};

}  // namespace

xid_class class_of(std::uint64_t xid) {
  if (std::ranges::find(fatal, xid, &fatal_xid::number) != std::end(fatal)) return xid_class::fatal;
  const auto holds = [xid](const xid_range& range) { return range.first <= xid && xid <= range.last; };
  return std::ranges::any_of(application, holds) ? xid_class::application : xid_class::notice;
}

std::string_view name_of(std::uint64_t xid) {
  const auto match = std::ranges::find(fatal, xid, &fatal_xid::number);
  return match == std::end(fatal) ? std::string_view() : match->name;
}

}  // namespace agent::cards
