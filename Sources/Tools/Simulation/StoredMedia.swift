package import Foundation

/// What a simulated cache has on disk: which parts of which resources, without their bytes.
///
/// Parts are kept as they arrive. Beyond the limit, the resource that was not used for the longest time goes first, from its
/// end on. A pure value.
package struct StoredMedia: Sendable {
  package struct Resource: Sendable {
    fileprivate var parts = RangeSet<Int64>()
    /// The size of the whole resource; nil if it is not known.
    package fileprivate(set) var size: Int64?
    package fileprivate(set) var isManifest: Bool
    /// The time, on the clock of all visits, at which a server last sent or confirmed it.
    package fileprivate(set) var checkedAt: Duration
    fileprivate var lastUse = 0

    /// The part from a position on that is stored, or else the gap up to the next one; `end` bounds both.
    func part(at position: Int64, upTo end: Int64) -> (range: Range<Int64>, isStored: Bool) {
      for part in parts.ranges where part.upperBound > position {
        let isStored = part.lowerBound <= position
        return (position..<min(isStored ? part.upperBound : part.lowerBound, end), isStored)
      }
      return (position..<end, false)
    }

    /// The number of stored bytes from the first one on.
    package var headByteCount: Int64 {
      parts.ranges.first.map { $0.lowerBound == 0 ? $0.upperBound : 0 } ?? 0
    }

    fileprivate var byteCount: Int64 { parts.ranges.reduce(0) { $0 + Int64($1.count) } }
  }

  package let byteLimit: Int64
  package private(set) var byteCount: Int64 = 0
  /// The time at which the current visit began, since the first one.
  package private(set) var visitBegan = Duration.zero
  private var resources: [URL: Resource] = [:]
  private var useCount = 0

  /// The time for which media is fresh without a header field that states it. A manifest is asked for again each time.
  package static let mediaLifetime = Duration.seconds(86_400)

  package init(byteLimit: Int64) { self.byteLimit = byteLimit }

  package subscript(url: URL) -> Resource? { resources[url] }

  /// Returns for each resource how many bytes a player may take from the disk, from the first one on.
  package func heads(_ byteCount: (Resource) -> Int64) -> [URL: Int64] { resources.mapValues(byteCount) }

  /// Ends a visit; the next one begins after this time, counted from the beginning of this one.
  package mutating func endVisit(after time: Duration) { visitBegan += time }

  /// Returns true if a resource needs no request to its server.
  package func isFresh(_ resource: Resource, at now: Duration) -> Bool {
    !resource.isManifest && visitBegan + now - resource.checkedAt < Self.mediaLifetime
  }

  /// Records a use.
  package mutating func touch(_ url: URL) {
    useCount += 1
    resources[url]?.lastUse = useCount
  }

  /// Records that the server has sent the resource, or has said that it is unchanged.
  package mutating func confirm(_ url: URL, at now: Duration) {
    resources[url]?.checkedAt = visitBegan + now
  }

  /// Adds a part that has arrived.
  ///
  /// - Parameters:
  ///   - size: The size of the whole resource; nil if it is not known.
  ///   - now: The time since the visit began.
  package mutating func add(
    _ part: Range<Int64>, of url: URL, size: Int64?, isManifest: Bool, at now: Duration
  ) {
    var resource =
      resources[url] ?? Resource(isManifest: isManifest, checkedAt: visitBegan + now)
    let before = resource.byteCount
    useCount += 1
    resource.lastUse = useCount
    resource.size = size ?? resource.size
    resource.parts.insert(contentsOf: part)
    resources[url] = resource
    byteCount += resource.byteCount - before
    trim(toByteCount: byteLimit)
  }

  /// Removes what was not used for the longest time, until at most this many bytes are left.
  package mutating func trim(toByteCount limit: Int64) {
    while byteCount > limit, let (url, oldest) = resources.min(by: { $0.value.lastUse < $1.value.lastUse }) {
      var oldest = oldest
      while byteCount > limit, let last = oldest.parts.ranges.last {
        let start = max(last.lowerBound, last.upperBound - (byteCount - limit))
        oldest.parts.remove(contentsOf: start..<last.upperBound)
        byteCount -= last.upperBound - start
      }
      resources[url] = oldest.parts.isEmpty ? nil : oldest
    }
  }

  package mutating func remove(_ url: URL) {
    guard let resource = resources.removeValue(forKey: url) else { return }
    byteCount -= resource.byteCount
  }
}
