internal import ReelCore
public import ReelPlayback

/// Walks feeds: what is played now, and what a swipe leads to. It knows nothing of slots and players, and sees its pool
/// through `PlayerPooling`.
///
/// Several feeds share one pool; each has a place of its own, to which it goes back when it is selected again.
///
/// Where there is no such item, as beyond the ends of a feed, a call does nothing and gives nil.
public final class PlayerService: Sendable {
  private struct Place: Sendable {
    var feed: Feed
    /// Of the current item; nil before the first was shown.
    var index: Int?
  }

  private struct State: Sendable {
    var places: [Place]
    var selected = 0
    var direction = 1
    var phase = SwipePhase.settled
    var rule = FailureRule.show
  }

  /// What plays now; nil before the first item, and in an empty feed.
  public let nowPlaying = ObservedProperty<NowPlaying?>(nil)
  /// The name of the feed that is selected.
  public let selectedFeed: ObservedProperty<String>

  private let pool: any PlayerPooling
  private let state: Locked<State>
  /// Held while the pool is told: of two calls, the later one is right.
  private let order = Monitor(())

  /// - Parameter feeds: in the order of their tabs; the first is selected. Without any, there is one empty feed.
  public init(pool: any PlayerPooling, feeds: [Feed], failureRule: FailureRule = .show) {
    let feeds = feeds.isEmpty ? [Feed(name: "items")] : feeds
    self.pool = pool
    var state = State(places: feeds.map { Place(feed: $0) })
    state.rule = failureRule
    self.state = Locked(state)
    selectedFeed = ObservedProperty(feeds[0].name)
    pool.setFailureHandler { [weak self] id, _ in self?.skip(id) }
  }

  deinit {
    pool.setFailureHandler(nil)
    nowPlaying.finish()
    selectedFeed.finish()
  }

  // MARK: Swiping

  /// Shows the first item.
  @discardableResult
  public func playFirst() -> Handover? { go(to: 0) }

  /// Shows the item behind the current one.
  @discardableResult
  public func next() -> Handover? { move(by: 1) }

  /// Shows the item before the current one.
  @discardableResult
  public func previous() -> Handover? { move(by: -1) }

  /// Shows an item, at once.
  @discardableResult
  public func go(to index: Int) -> Handover? { show(phase: .settled, of: { _ in index }) }

  /// A swipe has been let go of, and will end at this item: its first picture is shown, and it gets ready to play.
  @discardableResult
  public func beginSwipe(to index: Int) -> Handover? { show(phase: .dragEnded, of: { _ in index }) }

  /// The swipe has come to rest: its item plays.
  @discardableResult
  public func settle() -> Handover? { show(phase: .settled, of: { $0.index }) }

  public func setPlaying(_ isPlaying: Bool) { pool.setPlaying(isPlaying) }

  // MARK: Feeds

  /// The feeds, with their items as they are now.
  public var feeds: [Feed] { state.withLock { $0.places.map(\.feed) } }

  /// The place in a feed; nil where nothing of it was shown yet, or there is no such feed.
  public func position(in feed: String) -> Int? {
    state.withLock { state in state.places.first { $0.feed.name == feed }?.index }
  }

  /// Goes to another feed, to where it was left, or to its first item.
  @discardableResult
  public func select(feed name: String) -> Handover? {
    let isKnown = state.withLock { state in
      guard let index = state.places.firstIndex(where: { $0.feed.name == name }) else { return false }
      state.selected = index
      return true
    }
    guard isKnown else { return nil }
    selectedFeed.set(name)
    if let handover = show(phase: .settled, of: { $0.index ?? 0 }) { return handover }
    // An empty feed plays nothing.
    tell()
    return nil
  }

  /// Adds an item at the end of a feed. Nil where there is no such feed.
  @discardableResult
  public func append(
    _ source: MediaSource, to name: String, describe: (inout FeedItem) -> Void = { _ in }
  ) -> FeedItem? {
    let item = state.withLock { state -> FeedItem? in
      guard let index = state.places.firstIndex(where: { $0.feed.name == name }) else { return nil }
      return state.places[index].feed.append(source, describe: describe)
    }
    tell()
    return item
  }

  /// Removes an item. Where it is the current one, the item behind it takes its place, or else the one before.
  ///
  /// - Returns: false where there is none of this identity.
  @discardableResult
  public func remove(_ id: FeedItem.ID) -> Bool {
    let removed = state.withLock { state -> (isCurrent: Bool, isSelected: Bool)? in
      guard let place = state.places.firstIndex(where: { $0.feed.name == id.feed }),
        let index = state.places[place].feed.index(of: id)
      else { return nil }
      state.places[place].feed.remove(id)
      guard let current = state.places[place].index else { return (false, place == state.selected) }
      if index < current { state.places[place].index = current - 1 }
      if index == current {
        let count = state.places[place].feed.items.count
        state.places[place].index = count == 0 ? nil : min(current, count - 1)
      }
      return (index == current, place == state.selected)
    }
    guard let removed else { return false }
    if removed.isCurrent, removed.isSelected, show(phase: .settled, of: { $0.index }) != nil { return true }
    tell()
    return true
  }

  // MARK: - Private

  private func move(by step: Int) -> Handover? {
    show(phase: .settled, of: { place in place.index.map { $0 + step } ?? (step > 0 ? 0 : nil) })
  }

  private func show(phase: SwipePhase, of wanted: (Place) -> Int?) -> Handover? {
    order.withLock { _ in
      let target = state.withLock { state -> (Int, Playlist, FeedItem)? in
        let place = state.places[state.selected]
        guard let index = wanted(place), place.feed.items.indices.contains(index) else { return nil }
        if let old = place.index, old != index { state.direction = index > old ? 1 : -1 }
        state.places[state.selected].index = index
        state.phase = phase
        return (index, Playlist(place.feed), place.feed.items[index])
      }
      guard let (index, playlist, item) = target,
        let handover = try? pool.show(index, of: playlist, phase: phase)
      else { return nil }
      nowPlaying.set(NowPlaying(feed: playlist.feed, index: index, item: item, phase: phase))
      return handover
    }
  }

  /// Tells the pool what the selected feed holds.
  private func tell() {
    order.withLock { _ in
      let (place, phase) = state.withLock { ($0.places[$0.selected], $0.phase) }
      let playlist = Playlist(place.feed)
      pool.update(playlist, currentIndex: place.index)
      nowPlaying.set(
        place.index.map { NowPlaying(feed: playlist.feed, index: $0, item: playlist.items[$0], phase: phase) }
      )
    }
  }

  /// The rule for an item that can't be played.
  private func skip(_ id: FeedItem.ID) {
    let step = state.withLock { state -> Int? in
      let place = state.places[state.selected]
      guard state.rule == .skip, let index = place.index, place.feed.items[index].id == id else { return nil }
      return state.direction
    }
    if let step { _ = move(by: step) }
  }
}
