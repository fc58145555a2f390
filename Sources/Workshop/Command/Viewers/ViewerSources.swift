import Foundation
import ReelCore
import ReelLab
import ReelPool
import ReelSources

/// What the viewers of a run may watch.
struct ViewerSources: Sendable {
  /// A source, and its text on the command line or in the list.
  struct Entry: Sendable {
    let text: String
    let source: MediaSource
    /// How often it is chosen in proportion to others; nil if the list does not say.
    var weight: Double?
  }

  let entries: [Entry]
  let choice: ViewerPlan.Choice

  /// The sources of the command line, in order.
  init(_ arguments: [String]) throws(ReelError) {
    entries = try arguments.map { text throws(ReelError) in
      Entry(text: text, source: try MediaSource(argument: text))
    }
    choice = .inOrder(count: entries.count)
  }

  /// The sources of a list: in its order, or drawn by weights if it has any.
  ///
  /// - Parameter path: `-` for standard input.
  /// - Throws: `ReelError` of kind `usage` for a line that is not a source, and the errors of reading.
  init(listAt path: String) throws(ReelError) {
    let reader = try SourceListReader(path: path)
    let name = path == "-" ? "standard input" : path
    let location: MediaSource = path == "-" ? .standardInput : .url(URL(fileURLWithPath: path))
    let reference = FeedReference(feed: location, limit: FeedLimits().referenceByteCount)
    var entries: [Entry] = []
    while let read = try reader.next() {
      for entry in read {
        do throws(ReelError) {
          entries.append(try Self.entry(entry.content, reference))
        } catch {
          throw ReelError(.usage, error.reason, at: name, place: .line(entry.line), advice: error.advice)
        }
      }
    }
    guard !entries.isEmpty else { throw ReelError(.badManifest, "the list has no sources", at: name) }
    self.entries = entries
    choice =
      entries.contains { $0.weight != nil }
      ? .weighted(entries.map { $0.weight ?? 1 }) : .inOrder(count: entries.count)
  }

  /// The items of a feed, which viewers swipe through.
  init(_ feed: Feed, swipes: SwipeSpec) {
    entries = feed.items.map { Entry(text: $0.source.name, source: $0.source) }
    choice = .feed(feed, swipes)
  }

  // MARK: - Private

  private static func entry(
    _ content: SourceListParser.Content, _ reference: FeedReference
  ) throws(ReelError) -> Entry {
    switch content {
    case .failure(let error): throw error
    case .source(let text, let fields):
      var entry = Entry(text: text, source: try reference.source(text))
      if let field = fields.first(where: { $0.key == "weight" }) {
        guard let weight = Double(String(decoding: field.value, as: UTF8.self)), weight >= 0, weight.isFinite
        else { throw ReelError(.usage, "the weight is not a number of 0 or more") }
        entry.weight = weight
      }
      return entry
    }
  }
}
