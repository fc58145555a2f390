/// Places labels beside the points of a plot.
///
/// Points that lie together share a label. A label goes to the right of its points, or else to the left, above or below,
/// wherever it covers no other label or point.
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
