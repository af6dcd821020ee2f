//===- Inspect.cpp - sardonyx inspect -------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Json.h"
#include "Progress.h"
#include <algorithm>
#include <cstdio>
#include <stdexcept>

using namespace sardonyx;

static void printValues(const char *title,
                        const std::vector<ValueInfo> &values) {
  printf("%s\n", title);
  for (const ValueInfo &value : values)
    printf("  %-24s %s%s\n", value.name.c_str(), value.type.c_str(),
           value.hasRank         ? (" " + describeShape(value.dims)).c_str()
           : value.items.empty() ? " of any rank"
                                 : "");
}

/// "3 copies".
static std::string count(int64_t number, const char *one, const char *many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

static void printDevice(const DeviceReport &report) {
  printf("device      %s, %s to it and %s to the host in a run, beside inputs "
         "and results\n",
         count(report.kernels, "kernel", "kernels").c_str(),
         count(report.copiesToDevice, "copy", "copies").c_str(),
         count(report.copiesToHost, "copy", "copies").c_str());
  if (report.onProcessor.empty())
    return;
  printf("processor\n");
  for (const std::string &node : report.onProcessor)
    printf("  %s\n", node.c_str());
}

static void printJson(const InspectCommand &command,
                      const ModelReport &report) {
  JsonReport json("inspect");
  json.add("model", command.common.model);
  json.add("producer", report.metadata.producerName);
  json.add("producer_version", report.metadata.producerVersion);
  json.add("ir_version", report.metadata.irVersion);
  auto addCounts = [&](const char *key, const auto &counts) {
    json.nested(key, [&] {
      for (const auto &[name, count] : counts)
        json.add(name.c_str(), count);
    });
  };
  json.nested("opsets", [&] {
    for (const auto &[domain, version] : report.opsets)
      json.add(domain.empty() ? "ai.onnx" : domain.c_str(), version);
  });
  json.add("inputs", report.inputs);
  json.add("outputs", report.outputs);
  addCounts("operators", report.ops);
  addCounts("functions", report.functions);
  json.add("weight_bytes", report.weightBytes);
  json.add("weight_elements", report.weightElements);
  json.add("flops", report.flops);
  json.add("unsupported", report.unsupported);
  if (!report.device)
    return;
  json.nested("device", [&] {
    json.add("kernels", report.device->kernels);
    json.add("copies_to_device", report.device->copiesToDevice);
    json.add("copies_to_host", report.device->copiesToHost);
    json.add("on_processor", report.device->onProcessor);
  });
}

static void print(const ModelReport &report, bool hasDims) {
  if (!report.metadata.producerName.empty())
    printf("made by %s %s\n", report.metadata.producerName.c_str(),
           report.metadata.producerVersion.c_str());
  if (report.metadata.irVersion)
    printf("IR version %lld\n",
           static_cast<long long>(report.metadata.irVersion));
  for (const auto &[domain, version] : report.opsets)
    printf("opset %s %lld\n", domain.empty() ? "ai.onnx" : domain.c_str(),
           static_cast<long long>(version));
  printValues("inputs", report.inputs);
  printValues("outputs", report.outputs);

  std::vector<std::pair<std::string, int64_t>> ops(report.ops.begin(),
                                                   report.ops.end());
  std::stable_sort(ops.begin(), ops.end(), [](const auto &a, const auto &b) {
    return a.second > b.second;
  });
  printf("operators\n");
  for (const auto &[name, count] : ops)
    printf("  %-24s %6lld\n", name.c_str(), static_cast<long long>(count));
  if (!report.functions.empty())
    printf("functions\n");
  for (const auto &[name, count] : report.functions)
    printf("  %-24s %6lld\n", name.c_str(), static_cast<long long>(count));
  printf("weights     %s in %.3f million elements\n",
         describeBytes(report.weightBytes).c_str(),
         report.weightElements * 1e-6);
  printf("operations  %.3f GFLOP a run%s\n", report.flops * 1e-9,
         !hasDims ? " (open dimensions count as 1; see --dim)" : "");
  if (report.device)
    printDevice(*report.device);
  if (report.unsupported.empty()) {
    printf("supported   all of it\n");
    return;
  }
  printf("not supported\n");
  for (const std::string &sentence : report.unsupported)
    printf("  %s\n", sentence.c_str());
}

int inspect(const InspectCommand &command) {
  ModelSource source;
  source.path = command.common.model;
  const SessionOptions options = compileOptions(command.common);
  std::map<std::string, int64_t> dims = options.dims;
  for (const auto &[name, size] : parseDims("--dim", command.dims))
    dims[name] = size;
  auto found = [&] {
    Progress progress("compiling " + source.path);
    return inspectModel(source, dims, options);
  }();
  if (!found)
    throw std::runtime_error(found.error().message());
  if (command.json)
    printJson(command, *found);
  else
    print(*found, !dims.empty());
  return found->unsupported.empty() ? 0 : 1;
}
