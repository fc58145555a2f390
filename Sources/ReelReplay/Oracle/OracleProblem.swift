package import ReelCore

/// What the oracle decides: in which order the parts of items are fetched, by a viewer whose swipes are known, over a
/// link whose rate is known.
///
/// The rules are those of a pool, with the arithmetic of chunks:
/// - At each moment a contiguous window of at most ``slotCount`` items around the current one is held. It can change when
///   the current item changes; an item outside it loses what was loaded.
/// - One part is fetched at a time. A fetch takes its round trips, then its bytes at the rate of the link. When the
///   current item changes, another one may go first; what has been fetched stays.
/// - Until the current item's first part is complete, it goes first.
/// - A visit's delay is the time from its settle until the first part is complete and decoded, or until it is left.
/// - Then the item plays. It rebuffers if a part is not complete when the position reaches ``Part/neededAt``.
/// - When an item that has played to its end is left, it is put back to its start, and all of its parts are to be fetched
///   again (``Rewind``).
///
/// Times are microseconds since the walk began, positions are microseconds of media.
package struct OracleProblem: Sendable {
  /// The time from which on an item is the current one.
  package struct Stop: Sendable, Hashable {
    /// The end of the drag that leads to the item.
    package var time: Int64
    /// The item's index in the feed.
    package var index: Int
    /// When the swipe settles; `nil` for an item passed by in a burst.
    package var settle: Int64?
    /// False if the delay does not count, as at the start of a walk.
    package var isCounted: Bool

    package init(time: Int64, index: Int, settle: Int64?, isCounted: Bool = true) {
      self.time = time
      self.index = index
      self.settle = settle
      self.isCounted = isCounted
    }
  }

  /// A part of an item. The first one reaches up to the second frame.
  package struct Part: Sendable, Hashable {
    package var requestCount: Int
    package var byteCount: Int64
    /// The position at which playback needs the whole part.
    package var neededAt: Int64

    package init(requestCount: Int, byteCount: Int64, neededAt: Int64) {
      self.requestCount = requestCount
      self.byteCount = byteCount
      self.neededAt = neededAt
    }
  }

  /// What becomes of an item that has played to its end.
  package struct Rewind: Sendable, Hashable {
    /// The position at which the item has ended. Every part is needed before it.
    package var end: Int64
    /// Of the first part, which is fetched again without what is known of the item.
    package var requestCount: Int
    package var byteCount: Int64

    package init(end: Int64, requestCount: Int, byteCount: Int64) {
      self.end = end
      self.requestCount = requestCount
      self.byteCount = byteCount
    }
  }

  /// How far an item is loaded and played.
  package struct Progress: Sendable, Hashable {
    /// The parts that are complete.
    package var partCount = 0
    /// What is left of the next part's round trips and bytes; `nil` if it has not begun.
    package var left: (wait: Int64, byteCount: Int64)? {
      get { hasBegun ? (waitLeft, byteCountLeft) : nil }
      set {
        hasBegun = newValue != nil
        (waitLeft, byteCountLeft) = newValue ?? (0, 0)
      }
    }
    /// When the first part was complete and decoded.
    package var readyAt: Int64 = 0
    /// The position at which it plays on.
    package var position: Int64 = 0
    private var hasBegun = false
    private var waitLeft: Int64 = 0
    private var byteCountLeft: Int64 = 0

    package init() {}

    /// Of an item that was put back to its start.
    package init(_ rewind: Rewind, roundTrip: Int64) {
      left = (Int64(rewind.requestCount) * roundTrip, rewind.byteCount)
    }
  }

  /// An item that is visited or passed by.
  package struct Item: Sendable, Hashable {
    package var index: Int
    package var parts: [Part]
    /// `nil` for an item that never ends.
    package var rewind: Rewind?
    /// At the first stop.
    package var progress = Progress()

    package init(index: Int, parts: [Part], rewind: Rewind? = nil) {
      self.index = index
      self.parts = parts
      self.rewind = rewind
    }
  }

  /// What is minimized, in this order.
  package struct Cost: Sendable, Hashable, Comparable {
    package var delay: Int64 = 0
    package var rebuffering: Int64 = 0
    package var byteCount: Int64 = 0

    package init(delay: Int64 = 0, rebuffering: Int64 = 0, byteCount: Int64 = 0) {
      self.delay = delay
      self.rebuffering = rebuffering
      self.byteCount = byteCount
    }

    package static func < (left: Cost, right: Cost) -> Bool {
      (left.delay, left.rebuffering, left.byteCount) < (right.delay, right.rebuffering, right.byteCount)
    }
  }

  package var link: OracleLink
  package var slotCount: Int
  /// The time from the last byte of a first part to its second frame.
  package var decodeTime: Int64
  /// In order of time; at least one.
  package var stops: [Stop]
  /// When the last stop ends.
  package var end: Int64
  /// All items of the stops, each once.
  package var items: [Item]
  /// When the search begins; not before the first stop.
  package var begin: Int64

  package init(
    link: OracleLink, slotCount: Int, decodeTime: Int64 = 0, stops: [Stop], end: Int64, items: [Item]
  ) {
    self.link = link
    self.slotCount = max(slotCount, 1)
    self.decodeTime = decodeTime
    self.stops = stops
    self.end = end
    self.items = items
    begin = stops.first?.time ?? 0
  }

  /// The problem of a whole walk, in which every item is loaded from its lowest rung.
  ///
  /// - Parameters:
  ///   - plan: The walk.
  ///   - chunks: By index in the feed. An item that is not known costs nothing.
  ///   - link: The link.
  ///   - slotCount: The pool's slots.
  ///   - decodeTime: The time from the last byte of a start to its second frame, in microseconds.
  package init(
    _ plan: WalkPlan, chunks: (Int) -> ItemChunks?, link: LinkSpec, slotCount: Int, decodeTime: Int64 = 0
  ) {
    let timetable = WalkTimetable(plan)
    let items = Set(timetable.stops.map(\.index)).sorted().map { index in
      let media = chunks(index).flatMap { OracleMedia($0) }
      return Item(index: index, parts: media?.parts ?? [], rewind: media?.rewind)
    }
    self.init(
      link: OracleLink(link), slotCount: slotCount, decodeTime: decodeTime, stops: timetable.stops,
      end: timetable.end, items: items)
  }

  /// When a stop ends.
  package func end(of stop: Int) -> Int64 { stop + 1 < stops.count ? stops[stop + 1].time : end }
}
