//===- ProfilePage.cpp - A profile as an HTML page ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Profile.h"
#include <cstdio>

static const char kHead[] = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Profile</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; }
th, td { padding: .2em .8em; text-align: right; white-space: nowrap; }
th { cursor: pointer; border-bottom: 1px solid #888; }
td.text { text-align: left; white-space: normal; }
td.bar { min-width: 12em; text-align: left; }
.bar div { height: .9em; background: #4a7ebb; }
tr:hover { background: #eef3fa; }
</style>
</head>
<body>
)";

/// Sorts by the column whose head is clicked, numbers from large to small.
static const char kTail[] = R"(<script>
document.querySelectorAll("th").forEach(head => head.onclick = () => {
  const column = head.cellIndex;
  const body = head.closest("table").querySelector("tbody");
  const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  [...body.rows].sort((x, y) => isNaN(key(x)) || isNaN(key(y))
      ? key(x).localeCompare(key(y)) : key(y) - key(x))
    .forEach(row => body.append(row));
});
</script>
</body>
</html>
)";

static std::string escape(const std::string &text) {
  std::string result;
  for (char c : text)
    switch (c) {
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '&':
      result += "&amp;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  return result;
}

static std::string number(double value, const std::string &shown) {
  char exact[32];
  snprintf(exact, sizeof(exact), "%.9g", value);
  return std::string("<td data-value=\"") + exact + "\">" + escape(shown) +
         "</td>";
}

static std::string fixed(double value, const char *unit = "") {
  if (value <= 0)
    return number(0, "");
  char text[48];
  snprintf(text, sizeof(text), "%.1f%s", value, unit);
  return number(value, text);
}

static std::string text(const std::string &content) {
  return "<td class=\"text\">" + escape(content) + "</td>";
}

static std::string launchTable(const ProfileTable &table) {
  if (table.launches.empty())
    return "";
  std::string page =
      "<h2>Launches</h2>\n<table>\n<thead><tr><th>time</th><th>share</th>"
      "<th>calls</th><th>blocks</th><th>threads</th><th>registers</th>"
      "<th>shared bytes</th><th>occupancy</th><th>kernel</th></tr></thead>\n"
      "<tbody>\n";
  for (const LaunchRow &row : table.launches) {
    const double share =
        table.seconds > 0 ? 100 * row.seconds / table.seconds : 0;
    auto whole = [](double value) {
      return number(value, std::to_string(static_cast<long long>(value + 0.5)));
    };
    page += "<tr>" + number(row.seconds, describeSeconds(row.seconds)) +
            fixed(share, " %") + whole(row.calls / table.runs) +
            text(row.blocks) + text(row.threads) + whole(row.registers) +
            whole(row.sharedBytes) + fixed(100 * row.occupancy, " %") +
            text(row.kernel) + "</tr>\n";
  }
  return page + "</tbody>\n</table>\n";
}

std::string toHtml(const ProfileTable &table) {
  std::string page = kHead;
  page += "<h1>" + escape(table.model) + "</h1>\n<p>";
  for (const std::string &input : table.inputs)
    page += escape(input) + "<br>\n";
  page += (table.device.empty() ? std::to_string(table.threads) + " threads"
                                : escape(table.device)) +
          "; at its peak " + describePeaks(table) + "<br>\n";
  char line[256];
  snprintf(line, sizeof(line),
           "%s a run, the median of %zu; %.1f %% of it in the steps "
           "below</p>\n",
           describeSeconds(table.seconds).c_str(), table.runs,
           100 * table.covered);
  page += line;
  page += "<table>\n<thead><tr><th>time</th><th>share</th><th></th>"
          "<th>calls</th><th>GFLOP/s</th><th>GB/s</th><th>of roofline</th>"
          "<th>what</th><th>kernel</th><th>nodes</th></tr></thead>\n<tbody>\n";
  for (const ProfileRow &row : table.rows) {
    double share = table.seconds > 0 ? 100 * row.seconds / table.seconds : 0;
    double speed = row.seconds > 0 ? 1e-9 / row.seconds : 0;
    double widest = table.rows.front().seconds;
    double width = widest > 0 ? 100 * row.seconds / widest : 0;
    snprintf(line, sizeof(line),
             "<td class=\"bar\" data-value=\"%.9g\"><div style=\"width: "
             "%.1f%%\"></div></td>",
             row.seconds, width);
    page += "<tr>" + number(row.seconds, describeSeconds(row.seconds)) +
            fixed(share, " %") + line +
            number(row.calls, std::to_string(static_cast<long long>(
                                  row.calls / table.runs + 0.5))) +
            fixed(row.flops * speed) + fixed(row.bytes * speed) +
            fixed(100 * row.roofline, " %") + text(row.form) + text(row.kernel);
    std::string nodes;
    for (const std::string &node : row.nodes)
      nodes += (nodes.empty() ? "" : ", ") + node;
    page += text(nodes) + "</tr>\n";
  }
  return page + "</tbody>\n</table>\n" + launchTable(table) + kTail;
}
