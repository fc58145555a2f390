package import ReelCore
package import ReelFFmpeg

/// Small stills of a source at a regular interval, each made from a key frame.
///
/// The time of the source is divided into slots of equal length. A tile shows the key frame nearest to the beginning of
/// its slot. A slot whose key frame is already shown, or could not be read, has no tile.
package struct Storyboard: Sendable {
  /// How far apart the stills are.
  package enum Spacing: Sendable, Hashable {
    /// In seconds.
    case every(Double)
    /// So many stills, evenly over the duration.
    case count(Int)
  }

  /// The most slots of a storyboard.
  package static let slotLimit = 10_000
  /// The distance of stills in seconds is less than this.
  package static let intervalLimit = 1e6

  /// A still with its place.
  package struct Tile: Sendable {
    /// The index of its slot, which begins at `slot * interval`.
    package let slot: Int
    /// The frame's time on the timeline of the source, from the start of the storyboard.
    package let time: MediaTime
    /// The number of bytes of the frame's packet.
    package let byteCount: Int
    package let still: Still
  }

  /// A key frame that could not be shown.
  package struct Missing: Sendable {
    package let slot: Int
    package let error: ReelError
  }

  /// The length of a slot, in milliseconds. Larger than asked for if the key frames are further apart.
  package let interval: Int
  /// The number of slots.
  package let slotCount: Int
  /// In milliseconds.
  package let duration: Int
  /// The time at which the storyboard starts: 0, or the beginning of a live window.
  package let start: MediaTime
  package let isLive: Bool
  package let missing: [Missing]
  /// `pq` or `hlg` if HDR was mapped to SDR.
  package let hdr: String?
  package let traffic: Poster.Traffic
  /// The bytes before the key frames: manifests, indexes and initialization; of a media file, those that were read to
  /// open it.
  package let indexByteCount: Int64
  /// The id and the bit rate of the rung that was read; nil for a media file.
  package let rung: (id: String, bitsPerSecond: Int?)?
  /// What was read; nil for a media file.
  package let track: StillTrack?
  /// The errors that were overcome.
  package let faults: [ReelError]
  /// The error that ended the reading of a source without an index, if the number of missing stills is unknown.
  package let endFault: ReelError?
  /// The processor time of the threads that read, decoded and scaled.
  package let processorTime: Duration
}
