import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelLab

/// A self-contained page of HTML: styles and images are within it.
struct ReportPage {
  private let title: String
  private let subtitle: String
  private var sections: [String] = []

  init(title: String, subtitle: String) {
    self.title = title
    self.subtitle = subtitle
  }

  /// Adds a section; nothing if it has no content.
  ///
  /// - Parameters:
  ///   - content: HTML.
  ///   - note: A sentence below the heading; plain text.
  mutating func add(_ heading: String, _ content: String, note: String? = nil) {
    guard !content.isEmpty else { return }
    var section = "<section><h2>\(Markup.escape(heading))</h2>"
    if let note { section += "<p class=\"note\">\(Markup.escape(note))</p>" }
    sections.append(section + content + "</section>")
  }

  /// Adds content without a heading.
  mutating func add(_ content: String) { if !content.isEmpty { sections.append(content) } }

  /// The whole file.
  var html: String {
    """
    <!DOCTYPE html>
    <html lang="en"><head><meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
    img-src data:; script-src 'unsafe-inline'">
    <title>\(Markup.escape(title))</title>
    <style>
    \(Self.style)
    </style></head>
    <body><main>
    <header><h1>\(Markup.escape(title))</h1><p class="sub">\(Markup.escape(subtitle))</p></header>
    \(sections.joined(separator: "\n"))
    </main>
    <script>
    \(Self.script)
    </script>
    </body></html>

    """
  }

  // MARK: Pieces

  /// Returns a paragraph; nothing for an empty text.
  static func paragraph(_ text: String) -> String { text.isEmpty ? "" : "<p>\(Markup.escape(text))</p>" }

  static func tiles(_ figures: [(name: String, value: String)]) -> String {
    "<dl class=\"tiles\">"
      + figures.map { name, value in
        "<div><dt>\(Markup.escape(name))</dt><dd>\(Markup.escape(value))</dd></div>"
      }.joined() + "</dl>"
  }

  static func list(_ lines: [String], _ style: String = "") -> String {
    lines.isEmpty
      ? "" : "<ul class=\"\(style)\">\(lines.map { "<li>\(Markup.escape($0))</li>" }.joined())</ul>"
  }

  /// Returns names and what they stand for.
  static func definitions(_ rows: [(name: String, value: String)]) -> String {
    let list = rows.map { "<dt>\(Markup.escape($0))</dt><dd>\(Markup.escape($1))</dd>" }
    return Markup.element("dl", "run", list.joined())
  }

  /// Returns plots side by side; nothing without any.
  static func charts(_ plots: [String]) -> String {
    plots.isEmpty ? "" : "<div class=\"charts\">\(plots.joined())</div>"
  }

  /// Returns a frame with its caption, as one of those that `frames` puts into rows.
  ///
  /// - Parameters:
  ///   - picture: HTML, such as that of `image` or `noImage`.
  ///   - caption: HTML.
  ///   - text: A text below the caption.
  static func frame(_ picture: String, _ caption: String, _ text: String) -> String {
    "<figure><div class=\"pic\">\(picture)</div><figcaption>\(caption)"
      + "<br><span>\(Markup.escape(text))</span></figcaption></figure>"
  }

  static func frames(_ frames: [String], _ style: String = "frames") -> String {
    frames.isEmpty ? "" : "<div class=\"\(style)\">\(frames.joined(separator: "\n"))</div>"
  }

  private static func image(_ url: String, _ text: String) -> String {
    "<img alt=\"\(Markup.escape(text))\" src=\"\(url)\">"
  }

  /// The pictures of a page, up to a number of bytes.
  struct Pictures {
    private var left: Int

    init(byteLimit: Int) { left = byteLimit }

    /// Returns the image, or a note in its place if there is no more room for it.
    ///
    /// - Parameter type: The subtype of its media type.
    mutating func html(_ bytes: [UInt8], type: String, _ text: String = "") -> String {
      guard bytes.count <= left else { return noImage("not included") }
      left -= bytes.count
      return image("data:image/\(type);base64,\(Data(bytes).base64EncodedString())", text)
    }
  }

  /// Returns the reason why there is no image, in its place.
  static func noImage(_ reason: String, isFailure: Bool = false) -> String {
    "<div class=\"none\(isFailure ? "" : " later")\">\(Markup.escape(reason))</div>"
  }

  /// Returns the colours of pools, which are numbered from 1.
  static func legend(ofPools names: [String]) -> String {
    legend(
      names.enumerated().map { number, name in (classes: "k\(number % 8)", name: "\(number + 1): \(name)") })
  }

  /// Returns the names of colours.
  static func legend(_ entries: [(classes: String, name: String)]) -> String {
    "<ul class=\"legend\">"
      + entries.map { classes, name in
        "<li><svg viewBox=\"0 0 12 12\" width=\"12\" height=\"12\" aria-hidden=\"true\">"
          + "<rect width=\"12\" height=\"12\" class=\"\(classes)\"/></svg>\(Markup.escape(name))</li>"
      }.joined() + "</ul>"
  }

  // MARK: - Private

  /// The style sheet, also of other pages.
  static let style = """
    :root{color-scheme:light dark;--bg:#fff;--fg:#1a1d21;--mute:#5a636e;--line:#d9dee4;--soft:#f3f5f7;--edge:rgba(20,30,40,.28);\
    --good:#1a7f4b;--bad:#c6323b;--warn:#9a6700;--k0:#2a6fdb;--k1:#d9740f;--k2:#1a8a64;--k3:#b0489e;\
    --k4:#7a5cd0;--k5:#a8861a;--k6:#1590ab;--k7:#c94f5f}
    @media (prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--mute:#a0a9b3;--line:#353b42;\
    --soft:#1e2226;--edge:rgba(180,200,220,.34);--good:#4cc38a;--bad:#ff6b70;--warn:#e0b04a;--k0:#6aa5ff;--k1:#f0984a;--k2:#4fc09a;\
    --k3:#dd84cc;--k4:#a992f0;--k5:#d6b84a;--k6:#55c2da;--k7:#f08592}}
    @media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--mute:#444;--line:#bbb;--soft:#f3f5f7;\
    --good:#1a7f4b;--bad:#c6323b;--warn:#9a6700;--k0:#2a6fdb;--k1:#d9740f;--k2:#1a8a64;--k3:#b0489e;\
    --k4:#7a5cd0;--k5:#a8861a;--k6:#1590ab;--k7:#c94f5f}
    *{-webkit-print-color-adjust:exact;print-color-adjust:exact}
    .scroll,.lane{overflow:visible!important;background:none}.lane svg{width:100%!important;height:auto!important}\
    .tl .names{width:calc(100% * 92 / (92 + var(--w)))!important}.tl .names svg{width:100%!important}
    section{break-inside:avoid-page}details,button{display:none}td,th{white-space:normal!important}}
    *{box-sizing:border-box}html{-webkit-text-size-adjust:100%}
    body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",\
    Roboto,"Noto Sans","DejaVu Sans",sans-serif}
    main{max-width:1160px;margin:0 auto;padding:24px 16px 48px}
    h1{font-size:1.6rem;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
    h2{font-size:1.15rem;margin:0 0 8px}h2.source{font-size:1.3rem;border-top:1px solid var(--line);\
    padding-top:20px;overflow-wrap:anywhere}
    h3{font-size:1rem;margin:20px 0 4px}
    section{margin:32px 0 0}.sub,.note{color:var(--mute);margin:0 0 12px;overflow-wrap:anywhere}
    .note{font-size:.9rem}
    .tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px;margin:16px 0 0}
    .tiles div{background:var(--soft);border-radius:6px;padding:8px 10px}
    .tiles dt{color:var(--mute);font-size:.8rem}.tiles dd{margin:0;font-size:1.05rem;font-weight:600}
    .scroll,.lane{overflow-x:auto;background:linear-gradient(to right,var(--bg) 40%,transparent) 0 0/48px 100%,\
    linear-gradient(to left,var(--bg) 40%,transparent) 100% 0/48px 100%,\
    linear-gradient(to right,var(--edge),transparent) 0 0/14px 100%,\
    linear-gradient(to left,var(--edge),transparent) 100% 0/14px 100%;background-repeat:no-repeat;\
    background-attachment:local,local,scroll,scroll}
    .scroll:focus-visible{outline:2px solid var(--k0)}
    table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
    td,th{padding:4px 10px;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap;\
    vertical-align:top}th{color:var(--mute);font-weight:600}.n{text-align:right}
    td:first-child,th:first-child{padding-left:0}
    pre{background:var(--soft);border-radius:6px;padding:10px;overflow-x:auto;font-size:.8rem;margin:8px 0 0}
    pre.wrap{white-space:pre-wrap;overflow-wrap:anywhere}
    ul{margin:0;padding-left:20px}li{overflow-wrap:anywhere}
    .alert{list-style:none;margin:16px 0 0;padding:0}
    .alert li{border-left:4px solid var(--warn);background:var(--soft);padding:8px 12px;margin:0 0 8px}
    .alert.bad li{border-color:var(--bad)}
    .legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;padding:0;margin:6px 0 0;\
    font-size:.85rem;color:var(--mute)}.legend svg{margin-right:6px;vertical-align:-1px}
    .charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr));gap:20px}
    .charts figure,.tl figure{margin:0}figure svg{display:block;width:100%;height:auto}\
    .charts figure{max-width:560px}
    .tl{display:flex}.tl .names{flex:none;width:92px}.tl .names svg{display:block;width:92px}
    .lane{overflow-x:auto;flex:1;min-width:0}.lane svg{display:block;height:auto}
    @media (min-width:760px){.tl.fits .lane svg{width:100%!important}.tl.fits .names{width:calc(100% * 92 / (92 + var(--w)))}\
    .tl.fits .names svg{width:100%;height:auto}}
    .frames{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:14px;margin:0}
    .frames figure{margin:0;font-size:.82rem;overflow-wrap:anywhere;line-height:1.35;display:grid;\
    grid-template-rows:subgrid;grid-row:span 2;row-gap:6px}
    .frames .pic{display:flex;align-items:flex-end}
    .frames img{display:block;max-width:100%;max-height:164px;border-radius:4px}
    .frames .none{width:100%;height:120px;border-radius:4px;border:1px dashed var(--bad);color:var(--bad);\
    display:flex;align-items:center;justify-content:center;text-align:center;padding:8px}
    .frames.stills{grid-template-columns:repeat(auto-fill,minmax(160px,1fr))}
    .frames .none.later{border-color:var(--line);color:var(--mute)}
    .frames b{font-weight:600}.frames span{color:var(--mute)}
    .bars{font-size:.85rem}.bars div{margin:0 0 10px}.bars svg{display:block;width:100%;height:14px}
    summary{cursor:pointer;color:var(--mute);font-size:.9rem;margin-top:10px}
    button{font:inherit;font-size:.85rem;margin-top:8px}
    dl.run{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0;font-size:.9rem}
    dl.run dt{color:var(--mute)}dl.run dd{margin:0;overflow-wrap:anywhere}
    .finding{border-left:4px solid var(--line);background:var(--soft);border-radius:0 6px 6px 0;padding:10px 14px;\
    margin:0 0 12px}.finding.error{border-color:var(--bad)}.finding.warning{border-color:var(--warn)}
    .finding h3{margin:0;font-weight:400;overflow-wrap:anywhere}.finding h3 b,.finding h3 code{font-weight:600}
    .finding.error h3 b{color:var(--bad)}.finding.warning h3 b{color:var(--warn)}.finding h3 span{color:var(--mute)}
    .finding.note{color:var(--fg);font-size:1rem}.finding p{margin:4px 0 8px;overflow-wrap:anywhere}.finding .frames{margin:0 0 10px;\
    grid-template-columns:repeat(auto-fill,minmax(116px,1fr))}
    .falls{font-size:.85rem}.falls div{display:grid;grid-template-columns:minmax(90px,24%) 1fr 72px;gap:10px;\
    align-items:center;padding:2px 0}.falls svg{display:block;width:100%;height:14px;background:var(--soft)}\
    .falls .what{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
    @media (max-width:640px){.falls div{grid-template-columns:1fr 64px;gap:0 10px}.falls .what{grid-column:1/-1}}
    .falls+.legend,.courses+.legend{margin-top:10px}
    .sure{font-weight:600}
    .wide{border-collapse:separate;border-spacing:0}.wide .delta{white-space:normal}\
    .wide th{white-space:normal;vertical-align:bottom}.wide td,.wide th{padding:4px 8px}\
    .wide td:first-child,.wide th:first-child{position:sticky;left:0;background:var(--bg);padding-left:0;\
    white-space:normal;min-width:8.5em;max-width:14em;overflow-wrap:anywhere}
    @media (max-width:640px){.wide td,.wide th{padding:4px 6px}\
    .wide td:first-child,.wide th:first-child{min-width:6.5em;max-width:8.5em}}
    .met{color:var(--good)}.unmet{color:var(--bad)}
    text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;\
    fill:var(--fg)}text.m{fill:var(--mute)}text.w{fill:#fff}text.s{font-size:10px}
    .grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--mute);stroke-width:1}
    .k0{fill:var(--k0)}.k1{fill:var(--k1)}.k2{fill:var(--k2)}.k3{fill:var(--k3)}.k4{fill:var(--k4)}\
    .k5{fill:var(--k5)}.k6{fill:var(--k6)}.k7{fill:var(--k7)}
    .l0{stroke:var(--k0)}.l1{stroke:var(--k1)}.l2{stroke:var(--k2)}.l3{stroke:var(--k3)}.l4{stroke:var(--k4)}\
    .l5{stroke:var(--k5)}.l6{stroke:var(--k6)}.l7{stroke:var(--k7)}
    .l0,.l1,.l2,.l3,.l4,.l5,.l6,.l7,.ln{fill:none;stroke-width:1.8;stroke-linejoin:round}
    .w1{stroke-width:2.6}.w2{stroke-width:3.4}.w3{stroke-width:4.2}.w4{stroke-width:5}.w5{stroke-width:5.8}
    .d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}.ln{stroke:var(--fg);stroke-width:1.4}
    .o1{fill-opacity:.18}.o2{fill-opacity:.34}.o3{fill-opacity:.5}.o4{fill-opacity:.75}.o5{fill-opacity:1}
    .bad{fill:var(--bad)}.good{fill:var(--good)}.warn{fill:var(--warn)}.mute{fill:var(--mute)}.fg{fill:var(--fg)}\
    .soft{fill:var(--soft)}.linefill{fill:var(--line)}
    """

  /// An optional extra: without it, the text can still be selected.
  private static let script = """
    for (const box of document.querySelectorAll("details.copy")) {
      const button = box.querySelector("button");
      if (!navigator.clipboard) continue;
      button.hidden = false;
      button.addEventListener("click", () => navigator.clipboard.writeText(box.querySelector("pre").textContent)
        .then(() => { button.textContent = "Copied"; }));
    }
    """
}

extension Markup {
  /// Returns lines of preformatted text.
  static func escapeLines(_ lines: [String]) -> String {
    lines.map { line in
      line.split(separator: "\t", omittingEmptySubsequences: false).map { escape(String($0)) }
        .joined(separator: "\t")
    }.joined(separator: "\n")
  }
}

/// Text for HTML and XML.
enum Markup {
  /// Escapes the characters that have a meaning in HTML and XML, in text and in quoted attributes. Control characters
  /// are written as `\u{1b}`, and URLs without user names and passwords.
  static func escape(_ text: String) -> String {
    var escaped = ""
    for scalar in text.withoutUserInformation.printable.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      // XML 1.0 §2.2 excludes them.
      case "\u{fffe}", "\u{ffff}": escaped += "\u{fffd}"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// Returns an element with its content, which is HTML, and its classes, if it has any.
  static func element(_ tag: String, _ classes: String, _ content: String) -> String {
    "<\(tag)\(classes.isEmpty ? "" : " class=\"\(classes)\"")>\(content)</\(tag)>"
  }

  /// Returns a number with at most two decimals, as SVG requires. NaN and infinity become 0.
  static func number(_ value: Double) -> String {
    guard value.isFinite, abs(value) < 1e12 else { return "0" }
    let hundredths = Int64((value * 100).rounded())
    let (whole, rest) = (hundredths.magnitude / 100, hundredths.magnitude % 100)
    var text = hundredths < 0 ? "-\(whole)" : "\(whole)"
    guard rest > 0 else { return text }
    text += rest % 10 == 0 ? ".\(rest / 10)" : rest < 10 ? ".0\(rest)" : ".\(rest)"
    return text
  }
}

/// Builds an inline SVG image, shape by shape. Texts are escaped here.
struct SVG {
  enum Anchor: String {
    case start, middle, end
  }

  let width: Double
  let height: Double
  private(set) var body = ""

  /// - Parameters:
  ///   - classes: The classes that give the shape its colours.
  ///   - title: The tooltip of the shape.
  mutating func rect(
    _ x: Double, _ y: Double, _ width: Double, _ height: Double, _ classes: String, title: String? = nil
  ) {
    body +=
      "<rect x=\"\(Markup.number(x))\" y=\"\(Markup.number(y))\" width=\"\(Markup.number(max(width, 0)))\""
    body += " height=\"\(Markup.number(max(height, 0)))\" class=\"\(classes)\""
    close("rect", title)
  }

  mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ classes: String) {
    body += "<line x1=\"\(Markup.number(x1))\" y1=\"\(Markup.number(y1))\" x2=\"\(Markup.number(x2))\""
    body += " y2=\"\(Markup.number(y2))\" class=\"\(classes)\"/>"
  }

  /// Adds a line through points, or with `isClosed` the area that they enclose.
  mutating func path(_ points: [(x: Double, y: Double)], _ classes: String, isClosed: Bool = false) {
    guard let first = points.first else { return }
    var data = "M\(Markup.number(first.x)) \(Markup.number(first.y))"
    for point in points.dropFirst() { data += "L\(Markup.number(point.x)) \(Markup.number(point.y))" }
    body += "<path d=\"\(data)\(isClosed ? "Z" : "")\" class=\"\(classes)\"/>"
  }

  mutating func text(
    _ x: Double, _ y: Double, _ text: String, _ classes: String = "t", anchor: Anchor = .start
  ) {
    body += "<text x=\"\(Markup.number(x))\" y=\"\(Markup.number(y))\" class=\"\(classes)\""
    if anchor != .start { body += " text-anchor=\"\(anchor.rawValue)\"" }
    body += ">\(Markup.escape(text))</text>"
  }

  /// Returns the element, which scales with its width.
  ///
  /// - Parameters:
  ///   - label: The description of the image for readers who do not see it.
  ///   - style: The CSS of the element, for instance a width.
  func element(label: String, style: String = "") -> String {
    let style = style.isEmpty ? "" : " style=\"\(style)\""
    let size = "\(Markup.number(width)) \(Markup.number(height))"
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(size)\" role=\"img\""
      + " aria-label=\"\(Markup.escape(label))\"\(style)>\(body)</svg>"
  }

  // MARK: - Private

  private mutating func close(_ name: String, _ title: String?) {
    body += title.map { "><title>\(Markup.escape($0))</title></\(name)>" } ?? "/>"
  }
}

/// The command of a run, and how to repeat it.
struct RunDescription: Sendable {
  var version = Version.text
  var ffmpeg = "\(FFmpegVersion.release): \(FFmpegVersion.libraries.joined(separator: ", "))"
  /// The command line, without secrets and without the options that name files to write.
  var commandLine: String

  /// Options that name a file to write, and others that do not change the results.
  static let outputOptions: Set<String> = [
    "--report", "--trace", "--csv", "--junit", "--y4m", "--wav", "-o", "--output", "--results", "--metrics",
    "--jobs",
  ]

  /// - Parameter arguments: The arguments without the name of the program, by default those of this process.
  init(arguments: [String] = Array(CommandLine.arguments.dropFirst())) {
    commandLine = Redaction.commandLine(arguments, outputs: Self.outputOptions)
  }

  /// - Parameter rows: More facts, for instance the settings of a walk.
  func html(_ rows: [(name: String, value: String)] = []) -> String {
    let rows = [("reel", version), ("FFmpeg", ffmpeg)] + rows
    return ReportPage.definitions(rows.map { ($0, Redaction.clean($1)) })
      + "<pre class=\"wrap\">\(Markup.escape(commandLine))</pre>"
  }
}

extension WalkSettings {
  /// Under which a walk was made, in words.
  func conditions(isInterrupted: Bool) -> [String] {
    [linkWords ?? "link not modelled", waitWords, dwell, "seed \(seed)"]
      + (isVirtual ? ["simulated time"] : [])
      + (isInterrupted ? ["interrupted"] : [])
  }

  /// The settings as facts.
  var facts: [(name: String, value: String)] {
    var facts: [(name: String, value: String)] = [
      ("feed", "\(feed), \(itemCount.counted("item"))"), ("dwell", dwell), ("seed", "\(seed)"),
      ("link", linkWords ?? "not modelled"), ("waits", waitWords),
    ]
    if let shares, shares != .usual { facts.append(("swipes", shares.description)) }
    if firstRung != .adapted { facts.append(("first rung", firstRung.rawValue)) }
    if let device { facts.append(("device", device)) }
    let cost = decodeCost.map { ", \(DurationText.readable($0)) per frame" } ?? ""
    facts.append(("time", isVirtual ? "simulated\(cost)" : "real"))
    return facts
  }
}

extension String {
  /// With a capital letter at the beginning.
  var titled: String { prefix(1).uppercased() + dropFirst() }
}
