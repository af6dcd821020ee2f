//===- ProfilePage.cpp - A profile as an HTML page ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Profile.h"
#include <algorithm>
#include <cstdio>
#include <map>

static const char kHead[] = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Profile</title>
<style>
:root { color-scheme: light dark; --text: #1f2328; --back: #fff; --line: #d0d7de; --soft: #57606a; --bar: #4a7ebb;
        --mark: #eef3fa; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --back: #0d1117; --line: #3d444d; --soft: #9198a1; --bar: #5b93d6; --mark: #1c2736; }
}
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; padding: 0 1rem; max-width: 80rem;
       color: var(--text); background: var(--back); }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; }
dt, small, .note { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .2em .5em; text-align: right; white-space: nowrap; vertical-align: top; }
th { cursor: pointer; border-bottom: 1px solid var(--line); }
th.text, td.text { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 7em; }
td.bar { min-width: 4em; width: 10%; }
#operators { width: auto; }
#operators td.bar { width: 18em; }
@media (max-width: 60rem) {
  #steps td.bar, #steps th:nth-child(3) { display: none; }
  #operators td.bar { width: 8em; }
}
.bar div { height: .8em; margin-top: .3em; background: var(--bar); }
td small { display: block; white-space: normal; }
td:not(.text) small { max-width: 14em; margin-left: auto; }
tbody tr:hover, tr.marked { background: var(--mark); }
input { font: inherit; padding: .3em .6em; width: 20em; max-width: 100%; box-sizing: border-box; color: inherit;
        background: var(--back); border: 1px solid var(--line); border-radius: 4px; }
#timeline { position: relative; height: 3.2em; border: 1px solid var(--line); overflow: hidden; }
#timeline a { position: absolute; top: 0; bottom: 0; min-width: 1px; }
#timeline a:hover { outline: 2px solid var(--text); z-index: 1; }
</style>
</head>
<body>
)";

/// Sorts by the column whose head is clicked, numbers from large to small;
/// shows the rows that have what is looked for; leads from the timeline to a
/// row.
static const char kTail[] = R"(<script>
document.querySelectorAll("th").forEach(head => head.onclick = () => {
  const column = head.cellIndex;
  const body = head.closest("table").querySelector("tbody");
  const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  [...body.rows].sort((x, y) => isNaN(key(x)) || isNaN(key(y))
      ? key(x).localeCompare(key(y)) : key(y) - key(x))
    .forEach(row => body.append(row));
});
const rows = [...document.querySelectorAll("#steps tbody tr")];
document.getElementById("search").oninput = ({ target }) => {
  const wanted = target.value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
};
document.querySelectorAll("#timeline a").forEach(step => step.onclick = () => {
  rows.forEach(row => row.classList.toggle("marked", "#" + row.id === step.getAttribute("href")));
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

static std::string percent(double part) { return fixed(100 * part, " %"); }

static std::string whole(double value) {
  return number(value, std::to_string(static_cast<long long>(value + 0.5)));
}

static std::string bar(double part) {
  char text[96];
  snprintf(text, sizeof(text),
           "<td class=\"bar\" data-value=\"%.9g\"><div style=\"width: "
           "%.1f%%\"></div></td>",
           part, 100 * part);
  return text;
}

/// The heads of a table; those that begin with a space are of text.
static std::string heads(const std::vector<std::string> &names) {
  std::string line = "<thead><tr>";
  for (const std::string &name : names)
    line += name.rfind(' ', 0) == 0
                ? "<th class=\"text\">" + name.substr(1) + "</th>"
                : "<th>" + name + "</th>";
  return line + "</tr></thead>\n";
}

static std::string launchTable(const ProfileTable &table) {
  if (table.launches.empty())
    return "";
  std::string page =
      "<h2>Launches</h2>\n<div class=\"wide\"><table>\n" +
      heads({"time", "share", "calls", " blocks", " threads", "registers",
             "shared bytes", "occupancy", " kernel"}) +
      "<tbody>\n";
  for (const LaunchRow &row : table.launches)
    page += "<tr>" + number(row.seconds, describeSeconds(row.seconds)) +
            percent(table.seconds > 0 ? row.seconds / table.seconds : 0) +
            whole(row.calls) + text(row.blocks) + text(row.threads) +
            whole(static_cast<double>(row.registers)) +
            whole(static_cast<double>(row.sharedBytes)) +
            percent(row.occupancy) + text(row.kernel) + "</tr>\n";
  return page + "</tbody>\n</table></div>\n";
}

static std::string header(const ProfileTable &table) {
  std::string page = "<h1>" + escape(table.model) + "</h1>\n<dl>\n";
  auto add = [&](const std::string &name, const std::string &value) {
    page += "<dt>" + name + "</dt><dd>" + escape(value) + "</dd>\n";
  };
  for (const std::string &input : table.inputs)
    add("input", input);
  add(table.isDevice ? "device" : "machine",
      table.machine +
          (table.isDevice ? ""
                          : ", " + std::to_string(table.threads) +
                                (table.threads == 1 ? " thread" : " threads")));
  add("peaks", describePeaks(table));
  add("run", describeSeconds(table.seconds) +
                 ", the mean of the middle half of " +
                 std::to_string(table.runs) + " runs");
  add("made by", "sardonyx " SARDONYX_VERSION);
  return page + "</dl>\n";
}

/// Time by operators; a step that computes several is theirs together.
static std::string summary(const ProfileTable &table) {
  struct Sum {
    double seconds = 0, share = 0, calls = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ProfileRow &row : table.rows) {
    Sum &sum = sums[row.operators.empty() ? row.form : row.operators];
    sum.seconds += row.seconds;
    sum.share += row.share;
    sum.calls += row.calls;
  }
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto &x, const auto &y) {
                     return x.second.seconds > y.second.seconds;
                   });
  const double most = sorted.empty() ? 0 : sorted.front().second.share;
  sorted.push_back(
      {"between steps", {table.outsideSeconds, table.outsideShare, 0}});
  std::string page = "<h2>By operator</h2>\n<div class=\"wide\"><table "
                     "id=\"operators\">\n" +
                     heads({"time", "share", "", "calls", " operators"}) +
                     "<tbody>\n";
  for (const auto &[name, sum] : sorted)
    page += "<tr>" + number(sum.seconds, describeSeconds(sum.seconds)) +
            percent(sum.share) + bar(most > 0 ? sum.share / most : 0) +
            (sum.calls > 0 ? whole(sum.calls) : number(0, "")) + text(name) +
            "</tr>\n";
  return page + "</tbody>\n</table></div>\n";
}

/// The steps of a run from left to right, coloured by what they compute.
static std::string timeline(const ProfileTable &table) {
  if (table.timeline.empty())
    return "";
  double end = 0;
  for (const TimelineStep &step : table.timeline)
    end = std::max(end, step.end);
  if (end <= 0)
    return "";
  std::map<std::string, int> hues;
  for (const ProfileRow &row : table.rows)
    hues.try_emplace(row.operators, 0);
  // Far apart on the circle of colours, whatever their number.
  int number = 0;
  for (auto &[operators, hue] : hues)
    hue = static_cast<int>(number++ * 137.508) % 360;
  std::string page = "<h2>In order</h2>\n<div id=\"timeline\">\n";
  for (const TimelineStep &step : table.timeline) {
    const ProfileRow &row = table.rows[step.row];
    char place[160];
    snprintf(place, sizeof(place),
             "<a href=\"#s%zu\" style=\"left: %.3f%%; width: %.3f%%; "
             "background: hsl(%d 55%% 55%%)\" title=\"",
             step.row, 100 * step.begin / end,
             100 * (step.end - step.begin) / end, hues[row.operators]);
    page += place +
            escape(describeSeconds(step.end - step.begin) + " " + row.form +
                   " " + row.operators) +
            "\"></a>\n";
  }
  return page + "</div>\n<p class=\"note\">One run of " + describeSeconds(end) +
         " from left to right. A click leads to the step.</p>\n";
}

static std::string stepRow(const ProfileTable &table, size_t index) {
  const ProfileRow &row = table.rows[index];
  const double speed = row.seconds > 0 ? 1e-9 / row.seconds : 0;
  const double widest = table.rows.front().share;
  std::string roofline = percent(row.roofline);
  if (!row.reason.empty())
    roofline.insert(roofline.rfind("</td>"),
                    "<small>" + escape(row.reason) + "</small>");
  std::string what = text(row.form);
  if (!row.kernel.empty())
    what.insert(what.rfind("</td>"),
                "<small>" + escape(row.kernel) + "</small>");
  std::string nodes;
  for (const std::string &node : row.nodes)
    nodes += (nodes.empty() ? "" : ", ") + node;
  return "<tr id=\"s" + std::to_string(index) + "\">" +
         number(row.seconds, describeSeconds(row.seconds)) +
         percent(row.share) + bar(widest > 0 ? row.share / widest : 0) +
         whole(row.calls) + fixed(row.flops * speed) +
         fixed(row.bytes * speed) + roofline + what + text(nodes) + "</tr>\n";
}

std::string toHtml(const ProfileTable &table) {
  std::string page = kHead + header(table) + summary(table) + timeline(table);
  page += "<h2>Steps</h2>\n<p><input id=\"search\" type=\"search\" "
          "placeholder=\"Search steps\" aria-label=\"Search steps\"></p>\n"
          "<div class=\"wide\"><table id=\"steps\">\n" +
          heads({"time", "share", "", "calls", "GFLOP/s", "GB/s", "of roofline",
                 " what", " nodes"}) +
          "<tbody>\n";
  for (size_t i = 0; i < table.rows.size(); ++i)
    page += stepRow(table, i);
  page += "<tr>" +
          number(table.outsideSeconds, describeSeconds(table.outsideSeconds)) +
          percent(table.outsideShare) + bar(0) + number(0, "") + number(0, "") +
          number(0, "") + number(0, "") + text("between steps") + text("") +
          "</tr>\n";
  return page + "</tbody>\n</table></div>\n" + launchTable(table) + kTail;
}
