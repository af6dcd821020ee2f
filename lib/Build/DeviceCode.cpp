//===- DeviceCode.cpp - Which GPUs a model is built for -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCode.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using namespace sardonyx;

/// What a target's name begins with that is a GPU's.
static constexpr llvm::StringLiteral kNvidia = "nvidia";

MaybeError sardonyx::setTarget(const std::string &target,
                               BuildOptions &options) {
  llvm::StringRef rest = target;
  if (!rest.consume_front(kNvidia)) {
    options.session.triple = target;
    return std::nullopt;
  }
  auto refuse = [&] {
    return Error(ErrorKind::InvalidArgument,
                 "the target '" + target +
                     "' is none of the form 'nvidia:sm_90a,sm_80' or "
                     "'nvidia:sm_80,cpu'");
  };
  if (!rest.consume_front(":"))
    return refuse();
  llvm::SmallVector<llvm::StringRef> names;
  rest.split(names, ',');
  for (llvm::StringRef name : names) {
    if (name == "cpu")
      options.session.device.mayUseCpu = true;
    else if (name.starts_with("sm_") &&
             !llvm::is_contained(options.devices, name))
      options.devices.push_back(name.str());
    else
      return refuse();
  }
  return options.devices.empty() ? MaybeError(refuse()) : std::nullopt;
}

std::string sardonyx::findOldest(const std::vector<std::string> &devices) {
  std::string oldest;
  unsigned least = 0;
  for (llvm::StringRef device : devices) {
    unsigned sm = 0;
    if (device.substr(3).getAsInteger(10, sm) ||
        (!oldest.empty() && sm >= least))
      continue;
    oldest = device.str();
    least = sm;
  }
  return oldest;
}
