import ReelCore

/// Text for HTML and XML.
enum Markup {
  /// Escapes the characters that have a meaning in HTML and XML, in text and in quoted attributes. Control characters
  /// are written as `\u{1b}`.
  static func escape(_ text: String) -> String {
    var escaped = ""
    for scalar in text.printable.unicodeScalars {
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

  /// A number with at most two decimals, as SVG wants it. What is no number is 0.
  static func number(_ value: Double) -> String {
    guard value.isFinite, abs(value) < 1e12 else { return "0" }
    let hundredths = Int64((value * 100).rounded())
    let (whole, rest) = (hundredths.magnitude / 100, hundredths.magnitude % 100)
    var text = hundredths < 0 ? "-\(whole)" : "\(whole)"
    guard rest > 0 else { return text }
    text += rest % 10 == 0 ? ".\(rest / 10)" : rest < 10 ? ".0\(rest)" : ".\(rest)"
    return text
  }

  /// The first characters of a text, with an ellipsis if there are more.
  static func shortened(_ text: String, to count: Int) -> String {
    TextLayout.truncated(text, to: count)
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

  init(width: Double, height: Double) {
    self.width = width
    self.height = height
  }

  /// - Parameters:
  ///   - classes: The classes that give the shape its colours.
  ///   - title: What a pointer over the shape shows.
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

  mutating func circle(_ x: Double, _ y: Double, _ radius: Double, _ classes: String, title: String? = nil) {
    body += "<circle cx=\"\(Markup.number(x))\" cy=\"\(Markup.number(y))\" r=\"\(Markup.number(radius))\""
    body += " class=\"\(classes)\""
    close("circle", title)
  }

  /// A line through points, or with `isClosed` the area that they enclose.
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

  /// The element, which scales with its width.
  ///
  /// - Parameters:
  ///   - label: Describes the image for readers who do not see it.
  ///   - style: For instance a width.
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
