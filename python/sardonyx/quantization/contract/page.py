"""The report as a page: one file of HTML, without scripts and without network."""

from __future__ import annotations

import math
from html import escape

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --good: #2a7; --bad: #c43; --a: #58c; --b: #e92; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1.2rem; max-width: 1240px; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem } h2 { font-size: 1.1rem; margin: 1.6rem 0 .5rem }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: .7rem; margin: .9rem 0 }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem } .card b { display: block; font-size: 1.15rem }
.card small, .note { opacity: .75 } .wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .22rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th { position: sticky; top: 0; background: Canvas; text-align: right }
td.t, th.t { text-align: left } td.why { white-space: normal; min-width: 11rem; overflow-wrap: anywhere; text-align: left }
td.name { max-width: 15rem; overflow: hidden; text-overflow: ellipsis; text-align: left }
.bar { display: block; height: 5px; border-radius: 2px; margin: 2px 0 } .bar.a { background: var(--a) } .bar.b { background: var(--b) }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .35em }
svg { max-width: 100%; height: auto; display: block } svg text { font: 12px system-ui, sans-serif; fill: currentColor }
details { border-bottom: 1px solid var(--line); padding: .3rem 0 } summary { cursor: pointer }
"""

_DECIDED = '<th class="t">precision</th><th>error</th>'
_WHY = '<th class="t">why</th>'


def page_of(result, layers, histograms) -> str:
    """The page of a Result, of rows of its layers and of histograms (see `layers`)."""
    report = result.report
    parts = [_head(report), _cards(report, layers), _steps(report), _tried(report), _widths(report), _layers(layers), _histograms(histograms)]
    title = escape(f"Sardonyx: {report['summary']['metric']}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n<body>\n'
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _head(report) -> str:
    what = report.get("precision") or ("pruned" if "pruning" in report else "changed")
    summary = report["summary"]
    return (
        f"<h1>{escape(what)}: {escape(summary['metric'])} {escape(summary['before_text'])} → {escape(summary['after_text'])}</h1>"
        f'<div class="note">judged by {summary["rows"]:,} rows'
        f"{' that nothing was chosen by' if summary['fresh_samples'] else ''}, through the written file in a new process; "
        f"{summary['samples']:,} other samples; data {escape(summary['data'])}, seed {summary['seed']}</div>"
    )


def _card(title, value, note) -> str:
    return f'<div class="card"><small>{escape(title)}</small><b>{escape(value)}</b><small>{escape(note)}</small></div>'


def _cards(report, layers) -> str:
    summary, speed = report["summary"], report.get("speed")
    bound = f"at most {summary['max_error']:.4g}" if math.isfinite(summary["max_error"]) else "no bound"
    cards = [
        _card("loss", f"{summary['loss']:.4g}", f"{bound}; 95 %: {summary['loss_low']:.2g} … {summary['loss_high']:.2g}"),
        _card(
            "size", f"{summary['bytes_after'] / 1e6:.2f} MB",
            f"of {summary['bytes_before'] / 1e6:.2f} MB ({100 * summary['bytes_after'] / summary['bytes_before']:.0f} %)"
        ),
    ]  # fmt: skip
    if speed:
        cards.insert(1, _card(
            "speed", f"{speed['ratio']:.2f}×",
            f"{speed['before_ms']:.3f} → {speed['after_ms']:.3f} ms; 95 %: {speed['low']:.2f} … {speed['high']:.2f}"
        ))  # fmt: skip
    if "pruning" in report:
        pruning = report["pruning"]
        cards.append(_card(f"{pruning['cost']} left", f"{100 * pruning['left']:.1f} %", "of what can be told apart"))
    else:
        floats = len(report.get("float", {}))
        cards.append(_card("float nodes", str(floats), f"of {len(report.get('nodes', {}))}"))
    threads = summary["threads"] or "default"
    cards.append(_card("machine", str(summary["machine"]), f"threads: {threads}; onnxruntime {summary['onnxruntime'][:40]}"))
    return f'<div class="cards">{"".join(cards)}</div>'


def _scaled(values, size, margin):
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return lambda value: margin + (value - low) / span * (size - 2 * margin)


def _steps(report) -> str:
    """The curve of all that was tried: loss by how much is in float, or left."""
    steps = [step for step in report.get("steps", []) if step["loss"] is not None and math.isfinite(step["loss"])]
    if len(steps) < 2:
        return ""
    pruning = "pruning" in report
    xs = [step["left"] if pruning else len(step["float"]) for step in steps]
    ys = [step["loss"] for step in steps]
    bound = report["summary"]["max_error"]
    heights = ys + [0.0] + ([bound] if math.isfinite(bound) else [])
    at_x, at_y = _scaled([*xs, min(xs) - 1e-9], 900, 60), _scaled(heights, 260, 34)
    points = "".join(
        f'<circle cx="{at_x(x):.1f}" cy="{260 - at_y(y):.1f}" r="5" fill="var(--{"good" if y <= bound else "bad"})">'
        f"<title>step {place}: {y:.4g}</title></circle>"
        for place, (x, y) in enumerate(zip(xs, ys), 1)
    )
    line = " ".join(f"{at_x(x):.1f},{260 - at_y(y):.1f}" for x, y in sorted(zip(xs, ys)))
    limit = ""
    if math.isfinite(bound):
        height = 260 - at_y(bound)
        limit = (
            f'<line x1="60" x2="840" y1="{height:.1f}" y2="{height:.1f}" stroke="var(--bad)" stroke-dasharray="5 4"/>'
            f'<text x="845" y="{height + 4:.1f}">bound</text>'
        )
    label = "share left" if pruning else "tensors in float"
    ticks = "".join(
        f'<text x="{at_x(x):.1f}" y="254" text-anchor="middle">{f"{x:.3g}"}</text>' for x in sorted({min(xs), max(xs)})
    ) + "".join(f'<text x="4" y="{260 - at_y(y) + 4:.1f}">{y:.3g}</text>' for y in sorted({min(ys), max(ys)}))
    return (
        f'<h2>What was tried</h2><svg viewBox="0 0 900 280" role="img" aria-label="loss by {label}">'
        f'<polyline points="{line}" fill="none" stroke="var(--a)" stroke-width="1.5"/>{limit}{points}{ticks}'
        f'<text x="450" y="274" text-anchor="middle">loss by {label}</text></svg>'
    )


def _tried(report) -> str:
    if not report.get("tried"):
        return ""
    speeds = {name: f"{each['ratio']:.2f}×" if "ratio" in each else "" for name, each in report["tried"].items()}
    rows = "".join(
        f'<tr><td class="t">{escape(name)}</td><td>{speeds[name]}</td>'
        f'<td class="why">{escape(each.get("refused", "holds the bounds"))}</td></tr>'
        for name, each in report["tried"].items()
    )
    return f'<h2>Precisions</h2><div class="wide"><table><tr><th class="t">precision</th><th>speed</th><th class="t"></th></tr>{rows}</table></div>'


def _decibels(error) -> str:
    if error is None:
        return ""
    return f"{-10 * math.log10(max(error, 1e-30)):.1f} dB" if math.isfinite(error) else "lost"


def _colour(error) -> str:
    """From green at 50 dB to red at 0."""
    if error is None:
        return "transparent"
    decibels = -10 * math.log10(max(error, 1e-30)) if math.isfinite(error) else 0.0
    return f"hsl({min(max(decibels, 0), 50) / 50 * 130:.0f} 65% 45%)"


def _layers(layers) -> str:
    if not layers:
        return ""
    longest = max((max(row["before_us"] or 0, row["after_us"] or 0) for row in layers), default=0) or 1.0

    def time(value):
        return "" if value is None else f"{value:.1f}"

    told = any(row["precision"] for row in layers)  # which precisions, and why
    rows = []
    for row in layers:
        bars = "".join(
            f'<span class="bar {kind}" style="width:{100 * (row[key] or 0) / longest:.1f}px"></span>'
            for kind, key in (("a", "before_us"), ("b", "after_us"))
        )
        decided = (
            f'<td class="t">{escape(row["precision"])}</td>'
            f'<td><span class="dot" style="background:{_colour(row["error"])}"></span>{_decibels(row["error"])}</td>'
        )
        rows.append(
            f'<tr><td class="name" title="{escape(row["layer"])}">{escape(row["layer"])}</td><td class="t">{escape(row["op"])}</td>'
            f"{decided if told else ''}<td>{time(row['before_us'])}</td><td>{time(row['after_us'])}</td><td>{bars}</td>"
            f"<td>{100 * row['share']:.1f}</td><td>{row['bytes_before']:,}</td><td>{row['bytes_after']:,}</td>"
            + (f'<td class="why">{escape(row["reason"])}</td></tr>' if told else "</tr>")
        )
    head = (
        f'<tr><th class="t">layer</th><th class="t">op</th>{_DECIDED if told else ""}<th>µs before</th><th>after</th><th></th>'
        f'<th>% of time</th><th>bytes before</th><th>after</th>{_WHY if told else ""}</tr>'
    )
    return f'<h2>Layers</h2><div class="wide"><table>{head}{"".join(rows)}</table></div>'


def _widths(report) -> str:
    """How much is left of each group of what was pruned."""
    pruning = report.get("pruning", {})
    rows = [(name, each["left"], each["of"]) for name, each in pruning.get("groups", {}).items()]
    rows += [(name, each["of"] - each["zeros"], each["of"]) for name, each in pruning.get("weights", {}).items()]
    if not rows:
        return ""
    body = "".join(
        f'<tr><td class="name">{escape(name)}</td><td>{left:,}</td><td>{of:,}</td>'
        f'<td><span class="bar a" style="width:{160 * left / of:.0f}px"></span></td></tr>'
        for name, left, of in rows
    )
    head = f'<tr><th class="t">{"group" if "groups" in pruning else "weight of"}</th><th>left</th><th>of</th><th></th></tr>'
    return f'<h2>What is left</h2><div class="wide"><table>{head}{body}</table></div>'


def _histograms(histograms) -> str:
    parts = []
    for place, (name, each) in enumerate(histograms.items()):
        low, high = min(each["low"], each["range"][0]), max(each["high"], each["range"][1])
        span = (high - low) or 1.0
        width = 880 / len(each["counts"]) * (each["high"] - each["low"]) / span
        tallest = math.log1p(max(each["counts"]) or 1)
        first = 10 + 880 * (each["low"] - low) / span
        bars = "".join(
            f'<rect x="{first + width * at:.1f}" y="{130 - 110 * math.log1p(count) / tallest:.1f}" '
            f'width="{max(width - 1, 0.5):.1f}" height="{110 * math.log1p(count) / tallest:.1f}" fill="var(--a)"/>'
            for at, count in enumerate(each["counts"])
        )
        lines = "".join(
            f'<line x1="{10 + 880 * (end - low) / span:.1f}" x2="{10 + 880 * (end - low) / span:.1f}" y1="10" y2="130" '
            'stroke="var(--bad)" stroke-width="2"/>' for end in each["range"]
        )  # fmt: skip
        parts.append(
            f"<details{' open' if not place else ''}><summary>{escape(name)}</summary>"
            f'<svg viewBox="0 0 900 152" role="img" aria-label="histogram of {escape(name)}">{bars}{lines}'
            f'<text x="10" y="147">{low:.4g}</text><text x="890" y="147" text-anchor="end">{high:.4g}</text></svg></details>'
        )
    if not parts:
        return ""
    return (
        '<h2>Values and ranges</h2><div class="note">Tensors whose rounding costs most; counts are logarithms, red lines the '
        f"ends of what 8 bits hold.</div>{''.join(parts)}"
    )
