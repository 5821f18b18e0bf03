// The machine's variables: good values reach the properties, bad ones are sentences that name the variable.
#include "machine.h"

#include "emulated_device.h"
#include "hip_types.h"

namespace mi350::emu::test {
extern "C" {
hipError_t hipInit(unsigned);
hipError_t hipGetDeviceCount(int*);
hipError_t hipSetDevice(int);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t*, int);
hipError_t hipDeviceGetAttribute(int*, int, int);
}
namespace {

std::string why_not(const char* name, const char* value) {
  Setting s(name, value);
  Machine m;
  return read_machine(&m);
}

TEST(Machine, IsTheBoardUnlessToldOtherwise) {
  Machine m;
  EXPECT_EQ(read_machine(&m), "");
  EXPECT_EQ(m.xcds, 8);
  EXPECT_EQ(m.units, 256);
  EXPECT_EQ(m.devices, 1);
  EXPECT_FALSE(m.reverse);
}

TEST(Machine, PropertiesFollowTheVariables) {
  Setting x("TORCH_MI350_EMU_XCDS", "2");
  hipDeviceProp_t p;
  int value = 0;
  ASSERT_EQ(hipGetDevicePropertiesR0600(&p, 0), kSuccess);
  EXPECT_EQ(p.multiProcessorCount, 64) << "32 units on a die";
  Setting u("TORCH_MI350_EMU_CUS", "48");
  ASSERT_EQ(hipGetDevicePropertiesR0600(&p, 0), kSuccess);
  EXPECT_EQ(p.multiProcessorCount, 48);
  ASSERT_EQ(hipDeviceGetAttribute(&value, 63, 0), kSuccess);
  EXPECT_EQ(value, 48);
  ASSERT_EQ(hipDeviceGetAttribute(&value, 10018, 0), kSuccess);
  EXPECT_EQ(value, 2);
}

TEST(Machine, BadValuesAreSentencesWithVariableExpectedAndGot) {
  EXPECT_EQ(why_not("TORCH_MI350_EMU_XCDS", "9"),
            "TORCH_MI350_EMU_XCDS must be a whole number from 1 to 8, got '9'");
  EXPECT_EQ(why_not("TORCH_MI350_EMU_XCDS", "two"),
            "TORCH_MI350_EMU_XCDS must be a whole number from 1 to 8, got 'two'");
  EXPECT_EQ(why_not("TORCH_MI350_EMU_CUS", "33"),
            "TORCH_MI350_EMU_CUS must be a multiple of the number of dies (TORCH_MI350_EMU_XCDS), 8, and at most "
            "256, got '33'");
  EXPECT_NE(why_not("TORCH_MI350_EMU_CUS", "264"), "");
  EXPECT_NE(why_not("TORCH_MI350_EMU_CUS", "0"), "");
  EXPECT_EQ(why_not("TORCH_MI350_EMU_DEVICES", "-1"),
            "TORCH_MI350_EMU_DEVICES must be a whole number from 0 to 64, got '-1'");
  EXPECT_EQ(why_not("TORCH_MI350_EMU_ORDER", "backwards"),
            "TORCH_MI350_EMU_ORDER must be forward or reverse, got 'backwards'");
  EXPECT_NE(why_not("TORCH_MI350_EMU_RESIDENT", "0").find("TORCH_MI350_EMU_RESIDENT must be"), std::string::npos);
  EXPECT_EQ(why_not("TORCH_MI350_EMU_CUS", "128"), "");
}

TEST(Machine, BadValuesRefuseDevicesAndLaunches) {
  hipFunction_t f = kernel("basic", "copy_dwords");
  Buffer<uint32_t> in(64, 1), out(64, 0);
  Setting bad("TORCH_MI350_EMU_ORDER", "sideways");
  int count = 5;
  EXPECT_EQ(hipGetDeviceCount(&count), kInvalidValue);
  EXPECT_EQ(count, 0);
  EXPECT_NE(report().find("TORCH_MI350_EMU_ORDER must be forward or reverse, got 'sideways'"), std::string::npos);
  EXPECT_EQ(hipInit(0), kInvalidValue);
  EXPECT_EQ(hipSetDevice(0), kInvalidValue);
  EXPECT_EQ(launch(f, {}, out.get(), in.get(), 64u), kInvalidValue);
  EXPECT_NE(report().find("copy_dwords: TORCH_MI350_EMU_ORDER"), std::string::npos) << report();
}

TEST(Machine, ResidencyFollowsRegistersWavesBarriersAndLds) {
  Machine m;
  m.units = 32;
  KernelInfo k;
  k.vgprs = 64;
  EXPECT_EQ(workgroups_per_unit(k, 64, 0), 32);
  EXPECT_EQ(workgroups_per_unit(k, 128, 0), 16) << "a workgroup of several waves holds one of 16 barriers";
  EXPECT_EQ(workgroups_per_unit(k, 1024, 0), 2);
  EXPECT_EQ(workgroups_per_unit(k, 256, 64 << 10), 2);
  k.vgprs = 512;
  EXPECT_EQ(workgroups_per_unit(k, 256, 0), 1);
  EXPECT_EQ(workgroups_per_unit(k, 1024, 0), 0) << "16 waves of 512 registers";
  EXPECT_EQ(resident_workgroups(m, k, 256, 0), 32u);
  m.resident = 5;
  EXPECT_EQ(resident_workgroups(m, k, 256, 0), 5u);
  m.resident = 500;
  EXPECT_EQ(resident_workgroups(m, k, 256, 0), 32u);
}

}  // namespace
}  // namespace mi350::emu::test
