//===- ImageChoice.cpp - Which image a GPU runs ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Model/Device/ImageChoice.h"
#include <algorithm>
#include <utility>

using namespace sardonyx;

std::string sardonyx::architectureOf(int sm) {
  // Code for older devices runs on newer ones, but for what only the very
  // device has, from 9.0 on.
  constexpr int kKnown[] = {80, 86, 87, 89, 90, 100, 120}, kOwn = 90;
  int known = kKnown[0];
  for (int number : kKnown)
    if (number <= sm)
      known = number;
  return nameOfArchitecture(known, known == sm && sm >= kOwn);
}

std::string sardonyx::nameOfArchitecture(int sm, bool isOwn) {
  return "sm_" + std::to_string(sm) + (isOwn ? "a" : "");
}

namespace {
/// An architecture's compute capability, and whether its name ends in a letter:
/// then its code has instructions that no other device is sure to have.
struct Architecture {
  int sm = 0;
  bool isOwn = false;
};
} // namespace

static Architecture parse(std::string_view name) {
  Architecture found;
  if (name.substr(0, 3) == "sm_")
    name.remove_prefix(3);
  for (; !name.empty() && name[0] >= '0' && name[0] <= '9' && found.sm < 10000;
       name.remove_prefix(1))
    found.sm = found.sm * 10 + (name[0] - '0');
  found.isOwn = !name.empty();
  return found;
}

int sardonyx::rateImage(ImageKind kind, std::string_view architecture, int sm) {
  if (architecture.empty())
    return 0;
  const Architecture made = parse(architecture);
  const bool isVery = made.sm == sm;
  if (!isVery && (made.isOwn || kind == ImageKind::Cubin || made.sm > sm))
    return -1;
  // Of all others PTX of the newest comes first.
  constexpr int kVery = 40000, kOwn = 20000, kCubin = 10000;
  return made.sm + (isVery ? kVery : 0) + (made.isOwn ? kOwn : 0) +
         (kind == ImageKind::Cubin ? kCubin : 0);
}

std::vector<const Image *>
sardonyx::rankImages(const std::vector<const Image *> &images, int sm) {
  std::vector<std::pair<int, size_t>> rated;
  for (size_t i = 0; i < images.size(); ++i)
    if (int rating = rateImage(images[i]->kind, images[i]->architecture, sm);
        rating >= 0)
      rated.emplace_back(-rating, i);
  std::sort(rated.begin(), rated.end());
  std::vector<const Image *> fitting;
  for (const auto &[rating, i] : rated)
    fitting.push_back(images[i]);
  return fitting;
}

static constexpr char kCubinWord[] = "cubin", kPTXWord[] = "ptx";

std::string sardonyx::listImages(const std::vector<const Image *> &images) {
  std::string list;
  for (const Image *image : images)
    list += (list.empty() ? "" : ", ") + image->architecture + " " +
            (image->kind == ImageKind::Cubin ? kCubinWord : kPTXWord);
  return list;
}

std::vector<ListedImage> sardonyx::readImageList(std::string_view list) {
  std::vector<ListedImage> images;
  while (!list.empty()) {
    const size_t end = std::min(list.find(", "), list.size());
    const std::string_view item = list.substr(0, end);
    list.remove_prefix(std::min(end + 2, list.size()));
    const size_t space = item.find(' ');
    if (space == std::string_view::npos)
      continue;
    const std::string_view kind = item.substr(space + 1);
    if (kind == kCubinWord || kind == kPTXWord)
      images.push_back({kind == kCubinWord ? ImageKind::Cubin : ImageKind::PTX,
                        std::string(item.substr(0, space))});
  }
  return images;
}

std::string sardonyx::tellUnfitting(const std::string &list,
                                    const std::string &device, int sm) {
  return "it is '" + device + "' of compute capability " +
         std::to_string(sm / 10) + "." + std::to_string(sm % 10) +
         ", and there is " + list;
}
