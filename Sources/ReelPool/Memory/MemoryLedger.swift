package import ReelFFmpeg
package import ReelPlayback

/// What each player of a pool holds of memory, by kind, in bytes: figures of the places that own it.
public struct MemoryLedger: Sendable, Hashable {
  /// What memory is used for.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The model that was read from the manifest.
    case manifest
    /// Bytes that have come, and were not demuxed yet.
    case inFlight = "in_flight"
    /// Compressed media: the pages that the bytes of the packets lie in.
    case packets
    /// Decoded frames: those in the ring, and the one on show of a player without an output.
    case frames
    /// Frames that the decoder holds: references, and spare ones.
    case decoder
    /// All else that was allocated for the player: codec and demuxer contexts, what surrounds packets, Swift's objects.
    case internals
    /// What the allocator takes from the system for the player beyond what is allocated: gaps between allocations, and
    /// its own tables.
    case allocator
    /// The frame on show, where the player has an output.
    case output
  }

  /// What one player holds.
  public struct Account: Sendable, Hashable {
    private var bytes: [Kind: Int] = [:]
    /// False where the allocator can't tell players apart: `internals` and `allocator` are unknown then, and count as 0.
    public var knowsInternals = false

    public init() {}

    /// Of a player's own figures and of those of its memory account.
    ///
    /// - Parameter countsHeap: false leaves out all that the allocator tells, and the pages around packets: what is left
    ///   is the same in every run.
    package init(_ statistics: PlayerStatistics, figures: MemoryAccount.Figures?, countsHeap: Bool = true) {
      let frames = (statistics.ring?.byteCount ?? 0) + statistics.onShowByteCount
      let shown = statistics.hasOutput ? statistics.onShowByteCount : 0
      let packets = statistics.bufferByteCount
      self[.inFlight] = statistics.inFlightByteCount
      self[.packets] = packets
      self[.frames] = frames - shown
      self[.output] = shown
      self[.decoder] = max(0, (figures?.frameByteCount ?? frames) - frames)
      guard countsHeap, let figures else { return }
      self[.packets] = max(packets, figures.packetByteCount)
      guard let heap = figures.heap else { return }
      knowsInternals = true
      self[.manifest] = statistics.manifestByteCount
      // Packets that do not lie in pages of their own are allocated.
      let allocated = max(0, packets - figures.packetByteCount)
      self[.internals] = max(0, heap.used - statistics.manifestByteCount - allocated)
      self[.allocator] = max(0, heap.resident - heap.used)
    }

    public subscript(kind: Kind) -> Int {
      get { bytes[kind] ?? 0 }
      set { bytes[kind] = newValue }
    }

    /// All kinds together.
    public var byteCount: Int { Kind.allCases.reduce(0) { $0 + self[$1] } }
  }

  /// A player's part.
  public struct Entry: Sendable, Hashable {
    /// Nil for a player that is pinned, outside of the slots.
    public var slot: Int?
    /// Nil for a slot without an item.
    public var item: FeedItem.ID?
    public var account: Account

    public init(slot: Int?, item: FeedItem.ID?, account: Account) {
      self.slot = slot
      self.item = item
      self.account = account
    }
  }

  /// By slot, then those that are pinned.
  public var entries: [Entry]
  /// What the allocator takes from the system for all that no player owns alone: connections, tasks, and whatever else
  /// the program allocates. Without what is counted as in flight. Nil where the allocator can't tell.
  public var sharedByteCount: Int?

  public init(entries: [Entry], sharedByteCount: Int? = nil) {
    self.entries = entries
    self.sharedByteCount = sharedByteCount
  }

  /// - Parameter shared: what is allocated outside of all accounts.
  package init(entries: [Entry], shared: MemoryAccount.Figures.Heap?) {
    self.init(
      entries: entries,
      sharedByteCount: shared.map { $0.resident - entries.reduce(0) { $0 + $1.account[.inFlight] } })
  }

  /// What all players hold, without what they share. It prints as people write it: `3.5 MB`.
  public var total: ByteSize { ByteSize(byteCount: byteCount) }

  /// `total` in bytes.
  public var byteCount: Int { entries.reduce(0) { $0 + $1.account.byteCount } }
}
