internal import ReelCore
public import ReelPlayback

/// Walks feeds: what is played now, and what a swipe leads to. It knows nothing of slots and players, and sees its pool
/// through `PlayerPooling`.
///
/// Several feeds share one pool; each has a place of its own, to which it goes back when it is selected again.
///
/// Where there is no such item, as beyond the ends of a feed, a call does nothing and gives nil.
///
/// All of it may be used from any thread, also by an output of the pool that is shown a frame.
public final class PlayerService: Sendable {
  private struct Place: Sendable {
    var feed: Feed
    /// Of the current item; nil before the first was shown.
    var index: Int?
    /// Where the last swipe went: 1 or -1.
    var direction = 1

    init(_ feed: Feed) { self.feed = feed }
  }

  private struct State: Sendable {
    var places: [Place]
    var selected = 0
    var phase = SwipePhase.settled
    /// Of the latest change.
    var number = 0

    var place: Place {
      get { places[selected] }
      set { places[selected] = newValue }
    }
  }

  /// What the pool is to be told.
  private struct Order {
    let number: Int
    let snapshot: FeedSnapshot
    let index: Int?
    let phase: SwipePhase

    init(_ state: State) {
      number = state.number
      snapshot = FeedSnapshot(state.place.feed)
      index = state.place.index
      phase = state.phase
    }

    var item: FeedItem? { index.map { snapshot.items[$0] } }
  }

  /// What plays now; nil before the first item, and in an empty feed.
  public let nowPlaying = ObservedProperty<NowPlaying?>(nil)
  /// The name of the feed that is selected.
  public let selectedFeed: ObservedProperty<String>

  private let pool: any PlayerPooling
  private let failureRule: FailureRule
  private let state: Locked<State>

  /// - Parameter feeds: in the order of their tabs; the first is selected. Without any, there is one empty feed.
  public init(pool: any PlayerPooling, feeds: [Feed], failureRule: FailureRule = .show) {
    let feeds = feeds.isEmpty ? [Feed(name: "items")] : feeds
    self.pool = pool
    self.failureRule = failureRule
    state = Locked(State(places: feeds.map { Place($0) }), rank: .service)
    selectedFeed = ObservedProperty(feeds[0].name)
    pool.setFailureHandler { [weak self] id, _ in self?.skip(id) }
  }

  // The pool's handler stays, and does nothing any more: it may be another service's by now.
  deinit {
    nowPlaying.finish()
    selectedFeed.finish()
  }

  // MARK: Swiping

  /// Shows the first item.
  @discardableResult
  public func playFirst() -> Handover? { go(to: 0) }

  /// Shows the item behind the current one; the first one where there is none.
  @discardableResult
  public func next() -> Handover? { show { $0.place.index.map { $0 + 1 } ?? 0 } }

  /// Shows the item before the current one.
  @discardableResult
  public func previous() -> Handover? { show { $0.place.index.map { $0 - 1 } } }

  /// Shows an item, at once.
  @discardableResult
  public func go(to index: Int) -> Handover? { show { _ in index } }

  /// A swipe has been let go of, and will end at this item: its first frame is shown, and it gets ready to play.
  @discardableResult
  public func beginSwipe(to index: Int) -> Handover? { show(.dragEnded) { _ in index } }

  /// The swipe has come to rest: its item plays.
  @discardableResult
  public func settle() -> Handover? { show { $0.place.index } }

  public func setPlaying(_ isPlaying: Bool) { pool.setPlaying(isPlaying) }

  // MARK: Feeds

  /// The feeds, with their items as they are now.
  public var feeds: [Feed] { state.withLock { $0.places.map(\.feed) } }

  /// The place in a feed; nil where nothing of it was shown yet, or there is no such feed.
  public func position(in feed: String) -> Int? {
    state.withLock { state in state.places.first { $0.feed.name == feed }?.index }
  }

  /// Goes to another feed, to where it was left, or to its first item. An empty feed plays nothing.
  @discardableResult
  public func select(feed name: String) -> Handover? {
    let order = state.withLock { state -> Order? in
      guard let selected = state.places.firstIndex(where: { $0.feed.name == name }) else { return nil }
      state.selected = selected
      selectedFeed.set(name)
      if !state.place.feed.items.isEmpty { state.place.index = state.place.index ?? 0 }
      state.phase = .settled
      return change(&state)
    }
    return order.flatMap { tell($0, isShown: $0.index != nil) }
  }

  /// Adds an item at the end of a feed. Nil where there is no such feed.
  @discardableResult
  public func append(
    _ source: MediaSource, to name: String, describe: (inout FeedItem) -> Void = { _ in }
  ) -> FeedItem? {
    let (item, order) = state.withLock { state -> (FeedItem?, Order?) in
      guard let index = state.places.firstIndex(where: { $0.feed.name == name }) else { return (nil, nil) }
      let item = state.places[index].feed.append(source, describe: describe)
      return (item, index == state.selected ? change(&state) : nil)
    }
    if let order { _ = tell(order, isShown: false) }
    return item
  }

  /// Removes an item. Where it is the current one, the item behind it takes its place, or else the one before.
  ///
  /// - Returns: false where there is none of this identity.
  @discardableResult
  public func remove(_ id: FeedItem.ID) -> Bool {
    let removed = state.withLock { state -> (order: Order?, isCurrent: Bool)? in
      guard let place = state.places.firstIndex(where: { $0.feed.name == id.feed }),
        let index = state.places[place].feed.index(of: id)
      else { return nil }
      state.places[place].feed.remove(id)
      let current = state.places[place].index
      let count = state.places[place].feed.items.count
      state.places[place].index = current.flatMap { current in
        index < current ? current - 1 : count == 0 ? nil : min(current, count - 1)
      }
      return (place == state.selected ? change(&state) : nil, index == current)
    }
    guard let removed else { return false }
    if let order = removed.order { _ = tell(order, isShown: removed.isCurrent && order.index != nil) }
    return true
  }

  // MARK: - Private

  /// - Parameters:
  ///   - phase: nil for the one that there is.
  ///   - wanted: the index, called with the state locked.
  private func show(_ phase: SwipePhase? = .settled, _ wanted: (State) -> Int?) -> Handover? {
    let order = state.withLock { state -> Order? in
      guard let index = wanted(state), state.place.feed.items.indices.contains(index) else { return nil }
      if let old = state.place.index, old != index { state.place.direction = index > old ? 1 : -1 }
      state.place.index = index
      state.phase = phase ?? state.phase
      return change(&state)
    }
    return order.flatMap { tell($0, isShown: true) }
  }

  /// Has the pool and observers told of a change, whose state this is. With the state locked, so that observers are told
  /// in its order.
  private func change(_ state: inout State) -> Order {
    state.number += 1
    let order = Order(state)
    nowPlaying.set(
      order.item.map { item in
        NowPlaying(
          feed: order.snapshot.feed, index: state.place.index ?? 0, item: item, phase: state.phase)
      })
    return order
  }

  /// Tells the pool, without a lock: it may call an output, which may swipe, or wait for another thread's call to do so.
  /// So calls of several threads may reach the pool in another order than that of the changes; who finds that there was
  /// a later change tells the pool of that once more.
  private func tell(_ order: Order, isShown: Bool) -> Handover? {
    let handover = call(order, isShown: isShown)
    var told = order
    while let later = state.withLock({ $0.number == told.number ? nil : Order($0) }) {
      let isNews = later.item?.id != told.item?.id || later.phase != told.phase
      _ = call(later, isShown: isNews && later.index != nil)
      told = later
    }
    return handover
  }

  private func call(_ order: Order, isShown: Bool) -> Handover? {
    guard isShown, let index = order.index else {
      pool.update(order.snapshot, currentIndex: order.index)
      return nil
    }
    return try? pool.show(index, of: order.snapshot, phase: order.phase)
  }

  /// The rule for an item that can't be played.
  private func skip(_ id: FeedItem.ID) {
    guard failureRule == .skip else { return }
    _ = show(nil) { state in
      let place = state.place
      guard let index = place.index, place.feed.items[index].id == id else { return nil }
      return index + place.direction
    }
  }
}
