package import ReelCore
internal import ReelFFmpeg
package import ReelPlayback

/// The memory that each player of a pool holds, in bytes, by kind. Each figure comes from the object that owns the
/// memory.
public struct MemoryLedger: Sendable, Hashable {
  /// The use of memory.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The model parsed from the manifest.
    case manifest
    /// Bytes received but not yet demuxed.
    case inFlight = "in_flight"
    /// Compressed media: the pages that hold the bytes of the packets.
    case packets
    /// Decoded frames: those in the frame ring, and the frame on show of a player without an output.
    case frames
    /// Frames that the decoder holds: reference frames and spare ones.
    case decoder
    /// Everything else allocated for the player: codec and demuxer contexts, the structures around packets, Swift
    /// objects.
    case internals
    /// The memory that the allocator takes from the system for the player beyond the allocations: gaps
    /// between them, and its own tables.
    case allocator
    /// The frame on show of a player with an output.
    case output
  }

  /// The memory of one player.
  public struct Account: Sendable, Hashable {
    private var bytes: [Kind: Int] = [:]
    /// False without `ReelArenas`. Then `manifest`, `internals` and `allocator` are unknown and 0.
    package var knowsInternals = false

    /// An account with 0 bytes of each kind.
    package init() {}

    /// An account from a player's own figures and those of its memory account.
    ///
    /// Without an account, the decoder's part is estimated from its stream
    /// (`DecoderFacts.heldByteCount(outsideCount:)`), and manifests, internals and the allocator are unknown.
    package init(_ statistics: PlayerStatistics, figures: MemoryAccount.Figures?) {
      self.init(media: statistics)
      guard let figures else {
        self[.decoder] = statistics.decoderByteCount
        return
      }
      self[.decoder] = max(0, figures.frameByteCount - self[.frames] - self[.output])
      let packets = self[.packets]
      self[.packets] = max(packets, figures.packetByteCount)
      guard let heap = figures.heap else { return }
      knowsInternals = true
      self[.manifest] = statistics.manifestByteCount
      // Packets that do not lie in pages of their own are allocated.
      let allocated = max(0, packets - figures.packetByteCount)
      self[.internals] = max(0, heap.used - statistics.manifestByteCount - allocated)
      self[.allocator] = max(0, heap.resident - heap.used)
    }

    /// Creates an account from the figures that players count themselves.
    private init(media statistics: PlayerStatistics) {
      let frames = (statistics.ring?.byteCount ?? 0) + statistics.onShowByteCount
      let shown = statistics.hasOutput ? statistics.onShowByteCount : 0
      self[.inFlight] = statistics.inFlightByteCount
      self[.packets] = statistics.bufferByteCount
      self[.frames] = frames - shown
      self[.output] = shown
    }

    /// The bytes of one kind.
    public subscript(kind: Kind) -> Int {
      get { bytes[kind] ?? 0 }
      set { bytes[kind] = newValue }
    }

    /// The bytes of all kinds together.
    public var byteCount: Int { Kind.allCases.reduce(0) { $0 + self[$1] } }
  }

  /// One player with its slot, its item and its memory.
  public struct Entry: Sendable, Hashable {
    /// The slot, from 0; `nil` for a pinned player.
    public var slot: Int?
    /// The item that the player has; `nil` for a slot without one.
    public var item: FeedItem.ID?
    /// The memory that the player holds.
    public var account: Account

    package init(slot: Int?, item: FeedItem.ID?, account: Account) {
      self.slot = slot
      self.item = item
      self.account = account
    }
  }

  /// The start of an item on disk, which takes no memory.
  public struct Head: Sendable, Hashable {
    /// The item.
    public var item: FeedItem.ID
    /// The bytes that were read to store it, manifests included.
    public var byteCount: Int64
  }

  /// One entry per player: the slots in order, then the pinned players.
  public var entries: [Entry]
  /// The memory that the allocator takes from the system for everything that no single player owns: connections, tasks,
  /// and all other allocations of the program. Bytes in flight are not included, but pages that were never written are, so
  /// it can exceed the memory of the process. `nil` without `ReelArenas`.
  public var sharedByteCount: Int?
  /// The heads of items that the pool has loaded and that are on disk now, in the order of loading. Empty without a cache.
  public var heads: [Head] = []
  /// The bytes that the cache occupies on disk, those of other pools and programs included; `nil` without one.
  public var storedByteCount: Int64?

  package init(entries: [Entry], sharedByteCount: Int? = nil) {
    self.entries = entries
    self.sharedByteCount = sharedByteCount
  }

  /// - Parameter shared: The allocations outside all accounts.
  package init(entries: [Entry], shared: MemoryAccount.Figures.Heap?) {
    self.init(
      entries: entries,
      sharedByteCount: shared.map { $0.resident - entries.reduce(0) { $0 + $1.account[.inFlight] } })
  }

  /// The memory of all players together, without `sharedByteCount`. It prints as `3.5 MB`. Without `ReelArenas`, it lacks
  /// the manifests and what decoders and demuxers allocate, which is most of what a playing player holds.
  public var total: ByteSize { ByteSize(byteCount: byteCount) }

  /// `total` in bytes.
  package var byteCount: Int { entries.reduce(0) { $0 + $1.account.byteCount } }
}
