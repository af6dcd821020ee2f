#include "../../lib/Build/ElfObject.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace sardonyx;
using namespace llvm::ELF;

/// Everything that was put in is what LLVM reads.
TEST(ElfObject, ReadsBack) {
  ElfObject object(EM_X86_64);
  size_t table = object.addSection(".data.rel.ro", SHF_ALLOC | SHF_WRITE, 8);
  size_t data = object.addSection(".weights", SHF_ALLOC, 4096);
  EXPECT_EQ(object.append(table, std::string(24, 'x')), 0u);
  EXPECT_EQ(object.append(table, "y"), 24u);
  EXPECT_EQ(object.append(table, "z", 16), 32u);
  const std::string big(100000, 'w');
  object.appendBorrowed(data, big);
  object.define("model", table, 0, 24, /*isPublic=*/true);
  object.define("weights", data, 0, big.size(), /*isPublic=*/false);
  object.point(table, 8, "weights");
  object.point(table, 16, "elsewhere");
  char path[] = "/tmp/sardonyx-elf-XXXXXX";
  close(mkstemp(path));
  ASSERT_FALSE(object.write(path));

  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(buffer);
  auto read = llvm::object::ObjectFile::createELFObjectFile(**buffer);
  ASSERT_TRUE(static_cast<bool>(read));
  EXPECT_EQ((*read)->getArch(), llvm::Triple::x86_64);
  std::map<std::string, std::string> sections;
  std::vector<std::string> pointers;
  for (auto section : (*read)->sections()) {
    sections[section.getName()->str()] =
        llvm::cantFail(section.getContents()).str();
    for (auto relocation : section.relocations())
      pointers.push_back(std::to_string(relocation.getOffset()) + " " +
                         relocation.getSymbol()->getName()->str());
    if (*section.getName() == ".weights")
      EXPECT_EQ(section.getAlignment().value(), 4096u);
  }
  EXPECT_EQ(sections[".data.rel.ro"],
            std::string(24, 'x') + "y" + std::string(7, '\0') + "z");
  EXPECT_EQ(sections[".weights"], big);
  EXPECT_EQ(pointers, (std::vector<std::string>{"8 weights", "16 elsewhere"}));
  std::map<std::string, uint32_t> flags;
  for (auto symbol : (*read)->symbols())
    flags[symbol.getName()->str()] = llvm::cantFail(symbol.getFlags());
  using Flags = llvm::object::BasicSymbolRef;
  EXPECT_TRUE(flags["model"] & Flags::SF_Exported);
  EXPECT_TRUE(flags["weights"] & Flags::SF_Hidden);
  EXPECT_TRUE(flags["elsewhere"] & Flags::SF_Undefined);
  unlink(path);
}

TEST(ElfObject, TellsWhereItCannotWrite) {
  ElfObject object(EM_AARCH64);
  MaybeError error = object.write("/no/such/folder/x.o");
  ASSERT_TRUE(error);
  EXPECT_NE(error->message().find("/no/such/folder/x.o"), std::string::npos);
}
