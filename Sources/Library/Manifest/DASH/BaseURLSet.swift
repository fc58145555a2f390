import Foundation
import ReelCore

/// The URLs that references of an element are relative to, by falling preference (ISO/IEC 23009-1 §5.6.4, §5.6.5).
struct BaseURLSet: Sendable {
  /// How many are kept: each costs a URL for each segment that is asked for, and a client gives up before.
  static let limit = 8
  /// How many are made for all elements of an MPD together: each takes microseconds, and an MPD may have a hundred
  /// thousand elements.
  static let totalLimit = 50_000
  /// How long all of them may be together, in bytes.
  static let byteLimit = 64 << 20

  /// The limits for all base URLs of an MPD.
  struct Budget: Sendable {
    var alternates = BaseURLSet.totalLimit
    var bytes = BaseURLSet.byteLimit
  }

  let preferred: URLResolver
  /// Other locations of the same bytes, in case the preferred one fails.
  private(set) var alternates: [URLResolver] = []
  /// The sum of the offsets of the BaseURL elements that lead to the preferred one (§5.3.9.5.3).
  private(set) var availabilityTimeOffset = AvailabilityTimeOffset.zero

  init(_ url: URL, limit: Int) {
    preferred = URLResolver(base: url, limit: limit)
  }

  private init(
    _ preferred: URLResolver, alternates: [URLResolver], availabilityTimeOffset: AvailabilityTimeOffset
  ) {
    self.preferred = preferred
    self.alternates = alternates
    self.availabilityTimeOffset = availabilityTimeOffset
  }

  /// Applies the BaseURL elements of one level: combines each URL with each element, so that a level of
  /// relative ones multiplies the set and a level of absolute ones replaces it. Empty elements are ignored.
  ///
  /// An invalid URL is ignored too, with a warning. Throws `badManifest` if no URL is left, or if all URLs of
  /// the MPD together exceed the budget, which is counted down.
  func applying(
    _ elements: [MPD.BaseURL], path: String, budget: inout Budget, warnings: inout WarningLog
  ) throws(ReelError) -> BaseURLSet {
    let elements = Self.inOrder(elements)
    guard let first = elements.first else { return self }
    var (urls, seen, failure): ([URL], Set<String>, ReelError?) = ([], [], nil)
    for resolver in [preferred] + alternates {
      for element in elements where urls.count < Self.limit && (urls.isEmpty || budget.alternates > 0) {
        budget.alternates -= urls.isEmpty ? 0 : 1
        do throws(ReelError) {
          let url = try resolver.resolve(element.reference, place: .element(path))
          let text = url.absoluteString
          budget.bytes -= text.utf8.count
          if seen.insert(text).inserted { urls.append(url) }
        } catch {
          if failure == nil { failure = error }
        }
      }
    }
    guard budget.bytes >= 0 else {
      throw ReelError(
        .badManifest, "the BaseURLs of all elements are too long together", place: .element(path))
    }
    if let failure {
      guard !urls.isEmpty else { throw failure }
      warnings.add(failure)
    }
    var offset = AvailabilityTimeOffset.zero
    if let text = first.availabilityTimeOffset {
      if let stated = AvailabilityTimeOffset(text) {
        offset = stated
      } else {
        warnings.add(
          "@availabilityTimeOffset '\(text.excerpt)' of a BaseURL is not a number: ignored",
          place: .element(path))
      }
    }
    let resolvers = urls.map { URLResolver(base: $0, limit: preferred.limit) }
    return BaseURLSet(
      resolvers[0], alternates: Array(resolvers.dropFirst()),
      availabilityTimeOffset: availabilityTimeOffset + offset)
  }

  /// The URLs of a reference that `preferred` has resolved to `url`, at the alternates. It may be relative, or
  /// absolute, in which case there are none.
  func alternateURLs(of reference: String, besides url: URL) -> [URL] {
    if alternates.isEmpty { return [] }
    var urls: [URL] = []
    for resolver in alternates {
      let alternate = resolver.url(reference)
      if alternate != url, !urls.contains(alternate) { urls.append(alternate) }
    }
    return urls
  }

  // MARK: - Private

  /// By priority and weight if stated (ETSI TS 103 285 §10.8.2.1), or else in the order of the MPD. Weights are
  /// meant for random choice; here the heaviest comes first, so that the result is always the same.
  private static func inOrder(_ elements: [MPD.BaseURL]) -> [MPD.BaseURL] {
    let elements = elements.filter { !$0.reference.isEmpty }
    guard elements.contains(where: { $0.priority != nil || $0.weight != nil }) else { return elements }
    // The standard library does not promise that its sort is stable.
    return elements.enumerated().sorted { left, right in
      let (first, second) = (left.element, right.element)
      let priorities = (first.priority ?? 1, second.priority ?? 1)
      if priorities.0 != priorities.1 { return priorities.0 < priorities.1 }
      let weights = (first.weight ?? 1, second.weight ?? 1)
      if weights.0 != weights.1 { return weights.0 > weights.1 }
      return left.offset < right.offset
    }.map(\.element)
  }
}
