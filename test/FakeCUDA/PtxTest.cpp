#include "PtxTest.h"
#include <gtest/gtest.h>

using namespace sardonyx::fakecuda;

PtxKernel::PtxKernel(const std::string &body, unsigned parameters,
                     const std::string &before, const std::string &limits) {
  std::string text = ".version 8.6\n.target sm_90a\n.address_size 64\n" +
                     before + "\n.visible .entry k(";
  for (unsigned i = 0; i < parameters; ++i)
    text += (i ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
  text += ")\n" + limits +
          "{\n.reg .pred %p<16>;\n.reg .b16 %rs<32>;\n.reg .b32 %r<64>;\n"
          ".reg .b64 %rd<64>;\n.reg .f32 %f<32>;\n.reg .f64 %fd<32>;\n" +
          body + "\nret;\n}\n";
  module = Module::parse(text, memory, error);
}

std::string PtxKernel::run(const std::vector<uint64_t> &arguments,
                           uint32_t threads, uint32_t blocks, size_t shared) {
  if (!module)
    return error;
  const Function *function = module->find("k");
  Launch how;
  how.grid = {blocks, 1, 1};
  how.block = {threads, 1, 1};
  how.dynamicSharedBytes = shared;
  how.isDependent = isDependent;
  how.parameters.resize(arguments.size() * 8);
  memcpy(how.parameters.data(), arguments.data(), how.parameters.size());
  return launch(*function, how, memory);
}

template <class T>
static std::vector<T> runStored(const std::string &body,
                                const std::string &store) {
  PtxKernel kernel("ld.param.b64 %rd60, [p0];\nmov.u32 %r31, %tid.x;\n"
                   "mul.wide.u32 %rd61, %r31, " +
                   std::to_string(sizeof(T)) +
                   ";\nadd.s64 %rd60, %rd60, %rd61;\n" + body + "\n" + store);
  uint64_t out = kernel.put(std::vector<T>(32, 0));
  EXPECT_EQ(kernel.run({out}, 32), "");
  return kernel.get<T>(out, 32);
}

std::vector<uint32_t> runLanes(const std::string &body) {
  return runStored<uint32_t>(body, "st.global.b32 [%rd60], %r0;");
}

std::vector<uint64_t> runWideLanes(const std::string &body) {
  return runStored<uint64_t>(body, "st.global.b64 [%rd60], %rd0;");
}
