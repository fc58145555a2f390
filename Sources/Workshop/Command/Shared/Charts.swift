import Foundation
import ReelCore

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
    _ title: String, _ series: [Series], axis: String = "delay"
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
