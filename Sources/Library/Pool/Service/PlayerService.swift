internal import ReelCore
public import ReelPlayback
public import ReelSources

/// Navigates one or several feeds on one pool: it keeps the current item of each feed, and determines the
/// targets of swipes.
///
/// Each feed keeps its position, and returns to it when it is selected again. The pool keeps the starts of these items: some
/// in slots (``PoolConfiguration/slotsForOtherFeeds``), and if it has a cache, others on disk.
///
/// An index outside the feed changes nothing, and the handover has an error of kind `usage`. A call that has no target,
/// such as `next()` at the end of a feed, changes nothing and returns `nil`.
///
/// You can call all methods from any thread, also from an output of the pool while it is shown a frame.
public final class PlayerService: Sendable {
  private struct Place: Sendable {
    var feed: Feed
    /// The index of the current item; nil before the first was shown.
    var index: Int?
    /// The direction of the last swipe: 1 or -1.
    var direction = 1
    /// The number of the change at which another feed was selected instead; 0 if it never was selected.
    var leftAt = 0

    init(_ feed: Feed) { self.feed = feed }
  }

  private struct State: Sendable {
    var places: [Place]
    var selected = 0
    var phase = SwipePhase.settled
    /// The number of the latest change.
    var number = 0

    var place: Place {
      get { places[selected] }
      set { places[selected] = newValue }
    }

    /// The items that a change of feed would show, that of the feed that was left last first.
    var others: [FeedItem] {
      let others = places.indices.filter { $0 != selected && !places[$0].feed.items.isEmpty }
      return others.sorted { (places[$1].leftAt, $0) < (places[$0].leftAt, $1) }.map { number in
        places[number].feed.items[places[number].index ?? 0]
      }
    }
  }

  /// A change to report to the pool.
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

  /// The current item; `nil` before the first one, and in an empty feed.
  public var nowPlaying: ObservedProperty<NowPlaying?> { nowPlayingSource.property }
  /// The name of the selected feed.
  public var selectedFeed: ObservedProperty<String> { selectedFeedSource.property }

  package let nowPlayingSource = ObservedSource<NowPlaying?>(nil)
  private let selectedFeedSource: ObservedSource<String>

  private let pool: any PlayerPooling
  private let failureRule: FailureRule
  private let state: Locked<State>

  /// A service for `feeds` on `pool`. It shows nothing until you call a method such as ``playFirst()``.
  ///
  /// - Parameters:
  ///   - pool: The pool to play on. The service sets its failure handler.
  ///   - feeds: The feeds. The first one is selected. If two have one name, the second is named as in `new (2)`, also in
  ///     the identities of its items (``feeds``). If there are none, the service has one empty feed named `items`.
  ///   - failureRule: The reaction to a current item that can't be played.
  public init(pool: any PlayerPooling, feeds: [Feed], failureRule: FailureRule = .show) {
    let feeds = feeds.isEmpty ? [Feed(name: "items")] : Feed.distinct(feeds)
    self.pool = pool
    self.failureRule = failureRule
    state = Locked(State(places: feeds.map { Place($0) }), rank: .service)
    selectedFeedSource = ObservedSource(feeds[0].name)
    pool.setFailureHandler { [weak self] id, _ in self?.skip(id) }
    keepOthers()
  }

  // The pool's failure handler is left in place without effect, because it may belong to another service by
  // now.
  deinit {
    nowPlayingSource.finish()
    selectedFeedSource.finish()
  }

  // MARK: Swiping

  /// Shows the first item of the selected feed.
  @discardableResult
  public func playFirst() -> Handover { go(to: 0) }

  /// Shows the item after the current one, or the first item if there is no current one.
  @discardableResult
  public func next() -> Handover? { show { $0.place.index.map { $0 + 1 } ?? 0 } }

  /// Shows the item before the current one.
  @discardableResult
  public func previous() -> Handover? { show { $0.place.index.map { $0 - 1 } } }

  /// Shows the item at `index`, and plays it.
  @discardableResult
  public func go(to index: Int) -> Handover { show(index, .settled) }

  /// Ends the drag of a swipe that comes to rest at the item at `index`. Its first frame is shown, and its decoder is
  /// opened.
  ///
  /// Call it when the viewer lifts the finger (`scrollViewWillEndDragging` in UIKit), and ``settle()`` when the swipe has
  /// come to rest.
  @discardableResult
  public func endDrag(to index: Int) -> Handover { show(index, .dragEnded) }

  /// Reports that the swipe has come to rest: the current item plays.
  @discardableResult
  public func settle() -> Handover? { show { $0.place.index } }

  /// Plays the current item and those shown from now on, or pauses them.
  public func setPlaying(_ isPlaying: Bool) { pool.setPlaying(isPlaying) }

  // MARK: Feeds

  /// The feeds with their current items.
  public var feeds: [Feed] { state.withLock { $0.places.map(\.feed) } }

  /// Returns the index of the current item of a feed; `nil` if none of its items has been shown, or there is
  /// no such feed.
  public func position(in feed: String) -> Int? {
    state.withLock { state in state.places.first { $0.feed.name == feed }?.index }
  }

  /// Selects a feed, and shows the item at which it was left, or its first item. In an empty feed nothing plays.
  ///
  /// - Returns: `nil` also if there is no feed of this name.
  @discardableResult
  public func select(feed name: String) -> Handover? {
    let order = state.withLock { state -> Order? in
      guard let selected = state.places.firstIndex(where: { $0.feed.name == name }) else { return nil }
      state.place.leftAt = state.number + 1
      state.selected = selected
      selectedFeedSource.set(name)
      if !state.place.feed.items.isEmpty { state.place.index = state.place.index ?? 0 }
      state.phase = .settled
      return change(&state)
    }
    let handover = order.flatMap { tell($0, isShown: $0.index != nil) }
    if order != nil { keepOthers() }
    return handover
  }

  /// Adds an item at the end of a feed.
  ///
  /// - Parameters:
  ///   - source: The media of the item.
  ///   - name: The name of the feed.
  ///   - describe: Sets the item's title and other descriptions before it is added.
  /// - Returns: The item, or `nil` if there is no feed of this name.
  @discardableResult
  public func append(
    _ source: MediaSource, to name: String, describe: (inout FeedItem) -> Void = { _ in }
  ) -> FeedItem? {
    let (item, order) = state.withLock { state -> (FeedItem?, Order?) in
      guard let index = state.places.firstIndex(where: { $0.feed.name == name }) else { return (nil, nil) }
      let item = state.places[index].feed.append(source, describe: describe)
      return (item, index == state.selected ? change(&state) : nil)
    }
    if let order { _ = tell(order, isShown: false) } else { keepOthers() }
    return item
  }

  /// Removes an item from its feed. If it is the current one, the item after it takes its place, or else the one
  /// before.
  ///
  /// - Returns: False if there is no item with this identity.
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
    if let order = removed.order {
      _ = tell(order, isShown: removed.isCurrent && order.index != nil)
    } else {
      keepOthers()
    }
    return true
  }

  // MARK: - Private

  /// Tells the pool the items at which the other feeds were left. Calls from several threads may reach it in another order
  /// than their changes, so the thread repeats it until nothing has changed.
  private func keepOthers() {
    var told: [FeedItem]?
    while case let others = state.withLock({ $0.others }), others != told {
      pool.keepStarts(of: others)
      told = others
    }
  }

  private func show(_ index: Int, _ phase: SwipePhase) -> Handover {
    show(phase) { _ in index }
      ?? Handover(error: FeedSnapshot(state.withLock { $0.place.feed }).outside(index))
  }

  /// - Parameters:
  ///   - phase: Nil for the current phase.
  ///   - wanted: Returns the index; called with the state locked.
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

  /// Publishes a change to observers and returns the order for the pool. With the state locked, so that
  /// observers see changes in order.
  private func change(_ state: inout State) -> Order {
    state.number += 1
    let order = Order(state)
    nowPlayingSource.set(
      order.item.map { item in
        NowPlaying(
          feed: order.snapshot.feed, index: state.place.index ?? 0, item: item, phase: state.phase)
      })
    return order
  }

  /// Calls the pool, without a lock: the pool may call an output, which may swipe or wait for another thread
  /// that does. Therefore, calls from several threads may reach the pool in another order than their changes.
  /// A thread that finds a later change repeats that one.
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
    return pool.show(index, of: order.snapshot, phase: order.phase)
  }

  /// Applies the failure rule to an item.
  private func skip(_ id: FeedItem.ID) {
    guard failureRule == .skip else { return }
    _ = show(nil) { state in
      let place = state.place
      guard let index = place.index, place.feed.items[index].id == id else { return nil }
      return index + place.direction
    }
  }
}

/// The item that a ``PlayerService`` plays.
public struct NowPlaying: Sendable, Hashable {
  /// The feed's name.
  public var feed: String
  /// The item's index in the feed.
  public var index: Int
  /// The item with its title, author, likes and comments.
  public var item: FeedItem
  /// The phase of the latest swipe.
  public var phase: SwipePhase
}

/// The reaction of a ``PlayerService`` to a current item that can't be played.
public enum FailureRule: String, Sendable, Hashable {
  /// The item stays current.
  case show
  /// The service shows the next item in the direction of travel. At an end of the feed, the failed item stays.
  case skip
}
