internal import ReelCore
internal import ReelPool

/// A named figure of a run, such as a walk or the playback of a source.
public struct Figure<Run: Sendable>: Sendable {
  /// The name in assertions: `ttff.p95`.
  public let name: String
  /// A phrase that explains the figure.
  public let meaning: String
  /// The kinds that the figure is available as. The first one is printed.
  public let kinds: [WalkValue.Kind]
  /// A phrase that explains why a run may lack the figure.
  package let absence: String
  private let find: @Sendable (Run, WalkValue.Kind) -> WalkValue?

  package init(
    _ name: String, _ meaning: String, _ kinds: [WalkValue.Kind], absence: String = "there is no such figure",
    find: @escaping @Sendable (Run, WalkValue.Kind) -> WalkValue?
  ) {
    self.name = name
    self.meaning = meaning
    self.kinds = kinds
    self.absence = absence
    self.find = find
  }

  /// The figure of a run.
  ///
  /// - Parameters:
  ///   - run: What the figure is of.
  ///   - kind: The kind of figure; `nil` for the first of `kinds`.
  /// - Returns: `nil` if the run lacks the figure, or if the metric is not available as this kind.
  public func value(in run: Run, as kind: WalkValue.Kind? = nil) -> WalkValue? {
    let kind = kind ?? kinds[0]
    return kinds.contains(kind) ? find(run, kind) : nil
  }

  /// The figure with this name, in any letter case.
  ///
  /// - Throws: `ReelError` of kind `usage` if there is none, with a similar name if one exists.
  static func named(_ name: String, among figures: [Figure], advice listing: String) throws(ReelError)
    -> Figure
  {
    if let figure = figures.first(where: { $0.name == name.lowercased() }) { return figure }
    let similar = Similarity.suggestion(for: name, among: figures.map(\.name))
    let advice = similar.map { "did you mean \($0)? " } ?? ""
    throw ReelError(.usage, "\"\(name)\" is not a metric", advice: advice + listing)
  }
}
