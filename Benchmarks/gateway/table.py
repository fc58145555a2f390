"""Lines of results as text."""
import re


def verdict(line):
    """A phrase for one combination."""
    if line["outcome"] == "plays":
        return "plays"
    if line["outcome"] == "stalls":
        parts = []
        if line["stalls"]:
            parts.append(f"{line['stalls']} stall{'s' if line['stalls'] > 1 else ''} ({line['stalled_s']:g} s)")
        if line["jumps"]:
            parts.append(f"{line['jumps']} jump{'s' if line['jumps'] > 1 else ''}")
        return "plays with " + " and ".join(parts)
    return ("refused: " if line["outcome"] == "refused" else "fails: ") + (line.get("words") or "no word")


def sentence(line):
    """A line for a person."""
    text = f"{line['case']}, {line['gateway']}, {line['client']}: {verdict(line)}"
    if "played_s" in line:
        text += f" [{line['played_s']:g} s, first after {line['start_s']:g} s; gateway {kilobytes(line.get('gateway_bytes'))}, " \
                f"origin {kilobytes(line['origin_bytes'])}]"
    if line.get("problems") and line["outcome"] in ("plays", "stalls"):
        text += f" says: {'; '.join(line['problems'][:3])}"
    if line.get("origin_errors"):
        text += f" origin: {line['origin_errors']} errors, first {line['origin_error']}"
    return text


def kilobytes(count):
    return "–" if count is None else f"{count / 1000:,.0f} kB"


def cell(line):
    if line is None:
        return "–"
    text = verdict(line)
    if line["outcome"] == "stalls":
        text = text.replace("plays with ", "")
    return re.sub(r"\s+", " ", text[:160]).replace("|", "\\|")


def section(lines):
    """The section of RESULTS.md: the last line of each combination counts."""
    headers = [line["header"] for line in lines if "header" in line]
    found = {(line["case"], line["gateway"], line["client"]): line for line in lines if "case" in line}
    if not found:
        raise SystemExit("benchmark: no results in the file")
    cases = list(dict.fromkeys((line["case"], line["kind"]) for line in found.values()))
    gateways = list(dict.fromkeys(line["gateway"] for line in found.values()))
    players = list(dict.fromkeys(line["client"] for line in found.values()))
    header = headers[-1] if headers else {"machine": "", "versions": {}}
    text = ["## Clients of the gateway", "", f"- {header['machine']}", "- " + "; ".join(f"{name}: {value}" for name, value in header["versions"].items() if value)]
    if header.get("remark"):
        text.append(f"- {header['remark']}")
    for gateway in gateways:
        seconds = sorted({line["seconds"] for line in found.values() if line["gateway"] == gateway})
        text += ["", f"### {gateway}", "", f"Each client played {' or '.join(f'{value:g}' for value in seconds)} s.", "", "| presentation | " + " | ".join(players) + " | relayed of media |", "|---|" + "---|" * len(players) + "---:|"]
        for case, kind in cases:
            row = [found.get((case, gateway, player)) for player in players]
            if not any(row):
                continue
            text.append(f"| {case} | " + " | ".join(map(cell, row)) + f" | {relayed(row)} |")
    return "\n".join(text) + "\n"


def relayed(row):
    """Bytes that the gateway sent, as a share of what the origin sent, over all clients of a row."""
    have = [line for line in row if line and line.get("gateway_bytes") is not None and line.get("origin_bytes")]
    if not have:
        return "–"
    return f"{100 * sum(line['gateway_bytes'] for line in have) / sum(line['origin_bytes'] for line in have):.0f} %"
