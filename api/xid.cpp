#include "api/xid.hpp"

#include <algorithm>
#include <iterator>

namespace api {
namespace {

using enum xid_class;
using enum xid_cause;

/// Numbers 56, 61 and 122 to 125 are of cards before Ampere; the catalog calls them unused since.
/// Fatal is an action of RESET_GPU, RESTART_BM, RESTART_VM, or a workflow that begins with draining the node (48, 74,
/// 144 to 150). NVIDIA's device plugin ignores 109; the catalog asks for a reset. Application is RESTART_APP; 43 and 45
/// follow the end of a program, which 45 repeats for each of its channels.
constexpr xid_entry table[] = {
    {8, application, program, "the GPU stopped processing"},
    {11, application, program, "invalid or corrupted push buffer stream"},
    {13, application, program, "graphics engine exception"},
    {25, application, program, "invalid or illegal push buffer stream"},
    {31, application, program, "memory page fault"},
    {32, application, program, "invalid or corrupted push buffer stream"},
    {37, notice, driver, "firmware error of the driver"},
    {38, notice, driver, "firmware error of the driver"},
    {39, application, program, "exception of a copy engine"},
    {40, application, program, "exception of a copy engine"},
    {41, application, program, "exception of a copy engine"},
    {43, application, program, "the GPU stopped processing"},
    {44, notice, program, "fault of the graphics engine during a context switch"},
    {45, application, program, "channels removed after an earlier error"},
    {46, fatal, card, "the card does not answer in time"},
    {48, fatal, memory, "double-bit ECC error"},
    {54, notice, card, "the auxiliary power is not connected"},
    {56, notice, card, "error of the display engine"},
    {60, application, program, "exception of a video processor"},
    {61, notice, card, "breakpoint or warning of the internal microcontroller"},
    {62, fatal, card, "the power management unit has stopped"},
    {63, notice, memory, "a row of memory is marked for remapping, or a page for retirement"},
    {64, fatal, memory, "a row of memory could not be replaced"},
    {66, notice, driver, "illegal access by the driver"},
    {67, notice, driver, "illegal access by the driver"},
    {68, application, program, "exception of a video decoder"},
    {69, application, program, "exception of the graphics engine's class"},
    {70, application, program, "exception of a copy engine"},
    {71, application, program, "exception of a copy engine"},
    {72, application, program, "exception of a copy engine"},
    {74, fatal, nvlink, "NVLink error"},
    {75, application, program, "exception of a copy engine"},
    {76, application, program, "exception of a copy engine"},
    {77, application, program, "exception of a copy engine"},
    {78, notice, driver, "start of a vGPU failed"},
    {79, fatal, bus, "fallen off the bus"},
    {80, application, program, "corrupted data sent to the card"},
    {82, application, program, "exception of an image decoder"},
    {83, application, program, "exception of a video decoder"},
    {84, application, program, "exception of a video decoder"},
    {85, application, program, "exception of a copy engine"},
    {86, application, program, "exception of the optical flow engine"},
    {88, application, program, "exception of a video decoder"},
    {89, application, program, "exception of a video decoder"},
    {92, notice, memory, "many single-bit ECC errors"},
    {93, notice, card, "the infoROM was written more often than it should be"},
    {94, application, memory, "contained ECC error"},
    {95, fatal, memory, "uncontained ECC error"},
    {96, application, program, "exception of a video decoder"},
    {97, application, program, "exception of a video decoder"},
    {98, application, program, "exception of a video decoder"},
    {99, application, program, "exception of an image decoder"},
    {100, application, program, "exception of an image decoder"},
    {101, application, program, "exception of an image decoder"},
    {102, application, program, "exception of an image decoder"},
    {103, application, program, "exception of an image decoder"},
    {104, application, program, "exception of an image decoder"},
    {105, application, program, "exception of an image decoder"},
    {106, notice, unknown, "test message of the SMBus interface"},
    {107, notice, unknown, "test message of the SMBus interface"},
    {109, fatal, card, "context switch timed out"},
    {110, fatal, card, "security fault"},
    {119, fatal, firmware, "the GPU system processor does not answer"},
    {120, fatal, firmware, "error of the GPU system processor"},
    {121, notice, nvlink, "corrected error of the C2C link"},
    {122, notice, card, "a read of the infoROM failed"},
    {123, notice, card, "a write of the infoROM failed"},
    {124, notice, card, "an erase of the infoROM failed"},
    {125, notice, card, "the file system of the infoROM is damaged"},
    {126, application, program, "exception of a copy engine"},
    {127, application, program, "exception of a copy engine"},
    {128, application, program, "exception of a copy engine"},
    {129, application, program, "exception of a copy engine"},
    {130, application, program, "exception of a copy engine"},
    {131, application, program, "exception of a copy engine"},
    {132, application, program, "exception of a copy engine"},
    {133, application, program, "exception of a copy engine"},
    {134, application, program, "exception of a copy engine"},
    {135, application, program, "exception of a copy engine"},
    {136, fatal, nvlink, "link training failed"},
    {137, notice, program, "access over NVLink without a right to it"},
    {139, application, program, "exception of the optical flow engine"},
    {140, fatal, memory, "unrecovered ECC error"},
    {141, notice, unknown, "error on the fast path of CUDA"},
    {142, notice, program, "exception of a video encoder"},
    {143, fatal, card, "the card could not be initialised"},
    {144, fatal, nvlink, "NVLink error (SAW)"},
    {145, fatal, nvlink, "NVLink error (RLW)"},
    {146, fatal, nvlink, "NVLink error (TLW)"},
    {147, fatal, nvlink, "NVLink error (TREX)"},
    {148, fatal, nvlink, "NVLink error (NVLPW)"},
    {149, fatal, nvlink, "NVLink error (NETIR)"},
    {150, fatal, nvlink, "NVLink error (MSE)"},
    {151, fatal, card, "key rotation failed"},
    {152, notice, unknown, "memory fault of the deep learning accelerator"},
    {153, notice, unknown, "time-out of the deep learning accelerator"},
    {154, notice, card, "the recommended way to recover the card has changed"},
    {155, fatal, nvlink, "NVLink error found by software"},
    {156, fatal, memory, "a resource of the card was retired"},
    {157, notice, memory, "a resource of the card could not be retired"},
    {158, fatal, card, "fatal time-out of the card"},
    {159, notice, nvlink, "error on the link to the CPU"},
    {160, notice, memory, "a memory channel was retired"},
    {161, notice, memory, "a memory channel could not be retired"},
    {162, notice, card, "power smoothing works again"},
    {163, notice, card, "power smoothing was switched off"},
    {164, notice, card, "the circuit of power smoothing is nearly worn out"},
    {165, notice, card, "the circuit of power smoothing is worn out"},
    {166, notice, nvlink, "traffic on NVLink before it was set up for encryption"},
    {167, notice, bus, "fatal time-out of PCIe"},
    {168, notice, memory, "errors in the protected range of memory, which is smaller now"},
    {169, notice, card, "the security microcontroller has stopped"},
    {170, notice, nvlink, "interrupt of NVLink in confidential computing"},
    {171, notice, memory, "uncorrectable error of DRAM, with Xid 48"},
    {172, notice, memory, "uncorrectable error of SRAM, with Xid 48"},
};

}  // namespace

const xid_entry* find_xid(std::uint64_t xid) {
  const auto* entry = std::ranges::find(table, xid, &xid_entry::number);
  return entry == std::end(table) ? nullptr : entry;
}

xid_class class_of(std::uint64_t xid) {
  const auto* entry = find_xid(xid);
  return entry ? entry->action : notice;
}

std::string_view name_of(std::uint64_t xid) {
  const auto* entry = find_xid(xid);
  return entry ? entry->name : std::string_view();
}

}  // namespace api
