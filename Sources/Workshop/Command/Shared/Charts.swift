import Foundation
import ReelCore
import ReelLab

/// Plots of figures. Each is a pure function from values to SVG.
enum Charts {
  /// The values of one pool, and the classes of its line or its point.
  struct Series: Sendable {
    let name: String
    let values: [Double]
    var number = 0

    var line: String { "l\(number % 8)" + (number < 8 ? "" : number < 16 ? " d1" : " d2") }
  }

  /// The maximum number of points of a line; if there are more values, this many quantiles are drawn.
  private static let pointLimit = 300

  /// Returns the share of values at or below each delay, with a logarithmic axis.
  ///
  /// - Parameters:
  ///   - series: Delays in milliseconds.
  ///   - axis: The title of the axis of delays.
  static func delays(
    _ title: String, _ series: [Series], axis: String = "delay from the settle"
  ) -> String {
    var svg = SVG(width: 380, height: 250)
    let (left, right, top, bottom) = (40.0, 356.0, 26.0, 212.0)
    let most = series.flatMap(\.values).max() ?? 0
    let span = max(log10(1 + most), log10(101))
    func x(_ milliseconds: Double) -> Double {
      left + (right - left) * log10(1 + max(0, milliseconds)) / span
    }
    func y(_ share: Double) -> Double { bottom - (bottom - top) * share }
    svg.text(left, 14, title)
    shareAxis(&svg, left, right, y)
    for (tick, name) in delayTicks where tick <= most || tick <= 100 {
      svg.line(x(tick), top, x(tick), bottom, "grid")
      svg.text(x(tick), bottom + 15, name, "m s", anchor: .middle)
    }
    svg.text(right, bottom + 31, axis, "m s", anchor: .end)
    steps(&svg, series, x: x, y: y, right: right)
    return "<figure>\(svg.element(label: "\(title): shares by delay"))</figure>"
  }

  /// Returns the share of values at or below each value, with a linear axis.
  static func shares(_ title: String, _ series: [Series]) -> String {
    var svg = SVG(width: 380, height: 250)
    let (left, right, top, bottom) = (40.0, 356.0, 26.0, 212.0)
    let most = series.flatMap(\.values).max() ?? 0
    let step = niceStep(most / 4)
    let span = max((most / step).rounded(.up), 1) * step
    func x(_ value: Double) -> Double { left + (right - left) * max(0, value) / span }
    func y(_ share: Double) -> Double { bottom - (bottom - top) * share }
    svg.text(left, 14, title)
    shareAxis(&svg, left, right, y)
    // Values that are all 0 define no scale.
    for tick in most > 0 ? ticks(span * 1.001, count: 4) : [0] {
      svg.line(x(tick), top, x(tick), bottom, "grid")
      svg.text(x(tick), bottom + 15, tick.formatted(places: places(step)), "m s", anchor: .middle)
    }
    steps(&svg, series, x: x, y: y, right: right)
    return "<figure>\(svg.element(label: "\(title): shares by value"))</figure>"
  }

  /// A mean difference with its interval.
  struct Interval: Sendable {
    let name: String
    let mean: Double
    let lower: Double
    let upper: Double
    /// True if the interval excludes 0.
    let isSure: Bool
    let number: Int
    /// The tooltip of the point.
    let title: String
  }

  /// Mean differences, one below the other, as points on lines from end to end of their intervals.
  static func intervals(_ title: String, _ entries: [Interval]) -> String {
    let (rowHeight, nameLength) = (20.0, 19)
    let (left, right, top) = (132.0, 356.0, 26.0)
    let bottom = top + rowHeight * Double(entries.count) + 4
    var svg = SVG(width: 380, height: bottom + 24)
    let (least, most) = (min(entries.map(\.lower).min() ?? 0, 0), max(entries.map(\.upper).max() ?? 0, 0))
    let step = niceStep((most - least) / 4)
    let (low, high) = ((least / step).rounded(.down) * step, max((most / step).rounded(.up), 0) * step)
    let span = max(high - low, step)
    func x(_ value: Double) -> Double { left + (right - left) * (value - low) / span }
    svg.text(4, 14, title)
    for number in 0...Int((span / step).rounded()) {
      let tick = low + Double(number) * step
      let isZero = tick.magnitude < step / 2
      svg.line(x(tick), top, x(tick), bottom, isZero ? "axis" : "grid")
      let text = isZero ? "0" : tick.formatted(places: places(step)).replacing("-", with: "−")
      svg.text(x(tick), bottom + 15, text, "m s", anchor: .middle)
    }
    for (place, entry) in entries.enumerated() {
      let y = top + rowHeight * (Double(place) + 0.5) + 2
      svg.text(left - 8, y + 4, TextLayout.truncated(entry.name, to: nameLength), "s", anchor: .end)
      svg.line(x(entry.lower), y, x(entry.upper), y, "l\(entry.number % 8)")
      svg.circle(
        x(entry.mean), y, 4.5, entry.isSure ? "k\(entry.number % 8)" : "hollow l\(entry.number % 8)",
        title: entry.title)
    }
    return "<figure>\(svg.element(label: "\(title): mean differences and their intervals"))</figure>"
  }

  /// One result of a comparison with its costs; lower is better.
  struct Candidate: Sendable {
    let name: String
    let delay: Double
    let cost: Double
    let isOnFront: Bool
    let number: Int
  }

  /// Delay against a cost, with the members of the Pareto front filled.
  ///
  /// - Parameter format: Formats a cost, exactly enough to distinguish costs that differ by a step.
  static func front(
    _ title: String, _ candidates: [Candidate], format: (_ cost: Double, _ step: Double) -> String
  ) -> String {
    var svg = SVG(width: 380, height: 250)
    let (left, right, top, bottom) = (58.0, 356.0, 26.0, 212.0)
    let span = max(log10(1 + (candidates.map(\.delay).max() ?? 0)) * 1.05, log10(101))
    let most = candidates.map(\.cost).max() ?? 0
    let step = niceStep(most / 4)
    let height = max((most / step).rounded(.up), 1) * step
    func x(_ milliseconds: Double) -> Double {
      left + (right - left) * log10(1 + max(0, milliseconds)) / span
    }
    func y(_ cost: Double) -> Double { bottom - (bottom - top) * cost / height }
    svg.text(4, 14, title)
    var tick = 0.0
    // Costs that are all 0 define no scale.
    while tick <= (most > 0 ? height * 1.001 : 0) {
      svg.line(left, y(tick), right, y(tick), "grid")
      svg.text(left - 5, y(tick) + 4, format(tick, step), "m s", anchor: .end)
      tick += step
    }
    for (tick, name) in delayTicks where log10(1 + tick) <= span {
      svg.line(x(tick), top, x(tick), bottom, "grid")
      svg.text(x(tick), bottom + 15, name, "m s", anchor: .middle)
    }
    svg.text(right, bottom + 31, WalkFigures["second_frame.p95"].title, "m s", anchor: .end)
    for candidate in candidates {
      let title =
        "\(candidate.name): \(Markup.number(candidate.delay)) ms, \(format(candidate.cost, step / 10))"
      let shape =
        candidate.isOnFront ? "k\(candidate.number % 8)" : "hollow l\(candidate.number % 8)"
      svg.circle(x(candidate.delay), y(candidate.cost), 5, shape, title: title)
    }
    let points = candidates.map { (x: x($0.delay), y: y($0.cost), text: "\($0.number + 1)") }
    for label in PointLabels(points, right: right).labels {
      svg.text(label.x, label.y + PointLabels.Label.height - 2, label.text, "s")
    }
    return "<figure>\(svg.element(label: "\(title) against the delay of the second frame"))</figure>"
  }

  /// Returns a value over time as an area or a line, with times in seconds.
  static func course(
    _ title: String, _ points: [(time: Double, value: Double)], duration: Double, unit: String,
    marks: [(from: Double, to: Double, title: String)] = []
  ) -> String {
    var svg = SVG(width: 380, height: 250)
    let (left, right, top, bottom) = (40.0, 356.0, 26.0, 212.0)
    let step = niceStep(max(points.map(\.value).max() ?? 0, 0.001) / 3)
    let height = max(((points.map(\.value).max() ?? 0) / step).rounded(.up), 1) * step
    let span = max(duration, 0.001)
    func x(_ time: Double) -> Double { left + (right - left) * min(time / span, 1) }
    func y(_ value: Double) -> Double { bottom - (bottom - top) * value / height }
    svg.text(left, 14, title)
    var tick = 0.0
    while tick <= height * 1.001 {
      svg.line(left, y(tick), right, y(tick), "grid")
      svg.text(left - 5, y(tick) + 4, "\(tick.formatted(places: 3))\(unit)", "m s", anchor: .end)
      tick += step
    }
    for time in ticks(span, count: 4) {
      svg.line(x(time), bottom, x(time), bottom + 4, "axis")
      svg.text(x(time), bottom + 16, seconds(time), "m s", anchor: .middle)
    }
    for mark in marks {
      svg.rect(
        x(mark.from), top, max(x(mark.to) - x(mark.from), 1.5), bottom - top, "bad o2", title: mark.title)
    }
    if let first = points.first, let last = points.last {
      let line = points.map { (x: x($0.time), y: y($0.value)) }
      svg.path([(x(first.time), bottom)] + line + [(x(last.time), bottom)], "k0 o1", isClosed: true)
      svg.path(line, "l0")
    }
    return "<figure>\(svg.element(label: title))</figure>"
  }

  /// Returns a bar with the parts of a whole. Its width is its share of `longest`.
  ///
  /// - Parameter start: The value that it begins at.
  static func bar(
    _ parts: [(classes: String, value: Double, title: String)], from start: Double = 0, longest: Double
  ) -> String {
    var svg = SVG(width: 1000, height: 14)
    var left = longest > 0 ? start / longest * 1000 : 0
    for part in parts {
      let width = longest > 0 ? part.value / longest * 1000 : 0
      svg.rect(left, 0, width, 14, part.classes, title: part.title)
      left += width
    }
    return svg.element(label: parts.map(\.title).joined(separator: ", "))
      .replacing(" role=\"img\"", with: " preserveAspectRatio=\"none\" role=\"img\"")
  }

  // MARK: Scales

  /// Returns a step of 1, 2 or 5 times a power of ten that is not below `least`.
  static func niceStep(_ least: Double) -> Double {
    guard least > 0, least.isFinite else { return 1 }
    let power = pow(10, floor(log10(least)))
    for factor in [1.0, 2, 5] where factor * power >= least * 0.999 { return factor * power }
    return 10 * power
  }

  /// Returns the number of decimals that distinguish multiples of a step: 3, or more for a smaller step.
  static func places(_ step: Double) -> Int {
    step > 0 && step < 0.001 ? min(Int((-log10(step)).rounded(.up)), 9) : 3
  }

  /// Round times from 0 to `span`.
  static func ticks(_ span: Double, count: Int) -> [Double] {
    let step = niceStep(span / Double(max(count, 1)))
    return (0...max(0, Int(span / step))).map { Double($0) * step }
  }

  static func seconds(_ time: Double) -> String {
    time < 120 ? "\(time.formatted(places: 3)) s" : "\((time / 60).formatted(places: 1)) min"
  }

  // MARK: - Private

  private static func shareAxis(
    _ svg: inout SVG, _ left: Double, _ right: Double, _ y: (Double) -> Double
  ) {
    for share in [0, 0.25, 0.5, 0.75, 0.95, 1] {
      svg.line(left, y(share), right, y(share), "grid")
      if share != 1 { svg.text(left - 5, y(share) + 4, "\(Int(share * 100)) %", "m s", anchor: .end) }
    }
  }

  /// The cumulative distribution of each series.
  private static func steps(
    _ svg: inout SVG, _ series: [Series], x: (Double) -> Double, y: (Double) -> Double, right: Double
  ) {
    // Earlier lines are wider, so that equal ones can be distinguished.
    for (place, one) in series.enumerated() where !one.values.isEmpty {
      let sorted = one.values.sorted()
      var points = [(x: x(0), y: y(0))]
      let count = min(sorted.count, pointLimit)
      for step in 0..<count {
        let index = count == sorted.count ? step : (step + 1) * sorted.count / count - 1
        let before = points[points.count - 1].y
        points.append((x(sorted[index]), before))
        points.append((x(sorted[index]), y(Double(index + 1) / Double(sorted.count))))
      }
      points.append((right, y(1)))
      svg.path(points, "\(one.line) w\(min(series.count - 1 - place, 5))")
    }
  }

  private static let delayTicks: [(Double, String)] = [
    (0, "0"), (10, "10 ms"), (100, "100 ms"), (1_000, "1 s"), (10_000, "10 s"), (100_000, "100 s"),
  ]
}

/// Places labels beside the points of a plot.
///
/// Points that lie together share a label. A label goes to the right of its points, or else to the left,
/// above or below, wherever it covers no other label or point.
struct PointLabels {
  typealias Point = (x: Double, y: Double, text: String)

  /// A text with its upper left corner.
  struct Label: Sendable {
    let x: Double
    let y: Double
    let text: String
    static let height = 11.0

    var width: Double { PointLabels.width(of: text) }

    func overlaps(_ other: Label) -> Bool {
      x < other.x + other.width && other.x < x + width && abs(y - other.y) < Self.height
    }

    func covers(_ point: Point) -> Bool {
      point.x + PointLabels.radius > x && point.x - PointLabels.radius < x + width
        && point.y + PointLabels.radius > y
        && point.y - PointLabels.radius < y + Self.height
    }
  }

  /// The radius of a point.
  private static let radius = 5.0
  private(set) var labels: [Label] = []

  /// - Parameters:
  ///   - points: The points and their texts.
  ///   - right: The right edge of the plot.
  init(_ points: [Point], right: Double) {
    for group in Self.groups(of: points) {
      let places = Self.places(of: group)
      let free = places.first { label in
        label.x + label.width <= right + Self.radius && !labels.contains { $0.overlaps(label) }
          && !points.contains { label.covers($0) }
      }
      labels.append(free ?? places[0])
    }
  }

  // MARK: - Private

  private static func width(of text: String) -> Double { Double(text.count) * 6 }

  /// Points that are too close for labels of their own, with their texts in a row.
  private static func groups(of points: [Point]) -> [Point] {
    var groups: [(first: Point, texts: [String])] = []
    for point in points {
      let place = groups.firstIndex {
        abs($0.first.x - point.x) < Label.height && abs($0.first.y - point.y) < Label.height
      }
      if let place { groups[place].texts.append(point.text) } else { groups.append((point, [point.text])) }
    }
    return groups.map { ($0.first.x, $0.first.y, $0.texts.joined(separator: ", ")) }
  }

  private static func places(of point: Point) -> [Label] {
    let (gap, width) = (radius + 3, width(of: point.text))
    let middle = point.y - Label.height / 2
    return [
      (point.x + gap, middle), (point.x - gap - width, middle),
      (point.x - width / 2, point.y - gap - Label.height), (point.x - width / 2, point.y + gap),
    ].map { Label(x: $0.0, y: $0.1, text: point.text) }
  }
}
