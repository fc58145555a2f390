/// The sizes of what an item consists of, as far as the arithmetic of chunks needs them.
package struct ItemChunks: Sendable, Hashable {
  /// A segment, or for a media file a part between two key frames.
  package struct Chunk: Sendable, Hashable {
    package var duration: Duration
    package var byteCount: Int64
    /// The bytes up to the end of the second frame; nil if that is not known.
    package var startByteCount: Int64?

    package init(duration: Duration, byteCount: Int64, startByteCount: Int64? = nil) {
      self.duration = duration
      self.byteCount = byteCount
      self.startByteCount = startByteCount
    }
  }

  package struct Rung: Sendable, Hashable {
    package var id: String
    /// In bits per second, as the manifest states it.
    package var bitRate: Int
    /// The rung's playlist and initialization segment; the `moov` of a file.
    package var headerByteCount: Int64
    /// The requests for `headerByteCount`, one after the other.
    package var headerRequestCount: Int
    package var chunks: [Chunk]

    package init(
      id: String, bitRate: Int, headerByteCount: Int64, headerRequestCount: Int, chunks: [Chunk]
    ) {
      self.id = id
      self.bitRate = bitRate
      self.headerByteCount = headerByteCount
      self.headerRequestCount = headerRequestCount
      self.chunks = chunks
    }
  }

  /// The manifest's bytes; 0 for a media file.
  package var manifestByteCount: Int64
  /// In rising order of bit rate; at least one, each with the same durations.
  package var rungs: [Rung]

  package init(manifestByteCount: Int64, rungs: [Rung]) {
    self.manifestByteCount = manifestByteCount
    self.rungs = rungs
  }

  package var duration: Duration { rungs.first?.chunks.reduce(.zero) { $0 + $1.duration } ?? .zero }
}
