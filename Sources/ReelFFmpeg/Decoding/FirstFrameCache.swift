internal import CFFmpeg
internal import ReelCore

/// The first frames of streams, by content, for simulations that decode nothing else (`FirstFrameDecoder`).
///
/// The key of an entry is a hash of the codec parameters and of all packets that went into the decoder, so an entry says
/// what the decoder gives next, wherever the packets came from. May be shared by simulations that run side by side:
/// whether an entry is there changes what they cost, not what they do.
package final class FirstFrameCache: Sendable {
  /// What a decoder is known to be at one time.
  struct Condition: Sendable, Equatable {
    var reorderDepth = 0
    var referenceCount = 1
    var profileName: String?
    var level: Int?
    var frameRate: Rational?
    var pixelCount: Int?

    init(_ decoder: Decoder) {
      reorderDepth = decoder.reorderDepth
      referenceCount = decoder.referenceCount
      profileName = decoder.profileName
      level = decoder.level
      frameRate = decoder.frameRate
      pixelCount = decoder.pixelCount
    }
  }

  /// What a step of a decoder has led to.
  struct Outcome: Sendable {
    /// The pixels of the frames that came out, with the numbers of their packets.
    var frames: [(number: Int, pixels: SharedPixels)]
    var condition: Condition
  }

  private struct State {
    /// With the time of the last use, which is a count of uses.
    var outcomes: [ContentHash: (outcome: Outcome, lastUse: Int)] = [:]
    var byteCount = 0
    var useCount = 0
  }

  /// 512 MiB of frames by default.
  package static let defaultByteLimit = 512 << 20

  private let byteLimit: Int
  private let state = Locked(State())

  /// - Parameter byteLimit: The bytes of the frames that are kept; the ones used longest ago go first.
  package init(byteLimit: Int = FirstFrameCache.defaultByteLimit) { self.byteLimit = byteLimit }

  /// The bytes of the frames that are kept.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  // MARK: - Internal

  func outcome(for key: ContentHash) -> Outcome? {
    state.withLock { state in
      guard let found = state.outcomes[key]?.outcome else { return nil }
      state.useCount += 1
      state.outcomes[key]?.lastUse = state.useCount
      return found
    }
  }

  func insert(_ outcome: Outcome, for key: ContentHash) {
    // What is let go is freed after the lock.
    let dropped = state.withLock { state -> [Outcome] in
      guard state.outcomes[key] == nil else { return [] }
      state.useCount += 1
      state.outcomes[key] = (outcome, state.useCount)
      state.byteCount += outcome.byteCount
      guard state.byteCount > byteLimit else { return [] }
      var dropped: [Outcome] = []
      // The order of uses has no ties, so that of the dictionary does not matter.
      for (key, entry) in state.outcomes.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
        guard state.byteCount > byteLimit / 8 * 7 else { break }
        state.outcomes[key] = nil
        state.byteCount -= entry.outcome.byteCount
        dropped.append(entry.outcome)
      }
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }
}

extension FirstFrameCache.Outcome {
  /// Each frame with its smaller copy. An entry without frames counts a little, so that there is a bound to those too.
  fileprivate var byteCount: Int { frames.reduce(512) { $0 + 2 * $1.pixels.frame.byteCount } }
}

/// A hash of what went into a decoder: MurmurHash3 of 128 bits, chained. Not against forgers.
struct ContentHash: Hashable, Sendable {
  private var low: UInt64 = 0
  private var high: UInt64 = 0

  /// Puts bytes and numbers behind what was hashed.
  mutating func combine(_ bytes: UnsafeRawBufferPointer, _ numbers: [Int64] = []) {
    guard let context = av_murmur3_alloc() else { return }
    defer { av_free(UnsafeMutableRawPointer(context)) }
    av_murmur3_init_seeded(context, low)
    let head = [high, UInt64(bytes.count)] + numbers.map { UInt64(bitPattern: $0) }
    head.withUnsafeBytes {
      av_murmur3_update(context, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
    }
    if bytes.count > 0 {
      av_murmur3_update(context, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }
    var digest: [UInt64] = [0, 0]
    digest.withUnsafeMutableBytes {
      av_murmur3_final(context, $0.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
    (low, high) = (digest[0], digest[1])
  }

  /// The parameters that a decoder is opened with.
  init(_ stream: StreamInfo) {
    let parameters = stream.parameters.pointer.pointee
    combine(
      UnsafeRawBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size)),
      [
        Int64(parameters.codec_id.rawValue), Int64(parameters.codec_tag), Int64(parameters.format),
        Int64(parameters.profile), Int64(parameters.level), Int64(parameters.width), Int64(parameters.height),
        Int64(parameters.sample_aspect_ratio.num), Int64(parameters.sample_aspect_ratio.den),
        Int64(parameters.field_order.rawValue), Int64(parameters.color_range.rawValue),
        Int64(parameters.color_primaries.rawValue), Int64(parameters.color_trc.rawValue),
        Int64(parameters.color_space.rawValue), Int64(parameters.chroma_location.rawValue),
        Int64(parameters.video_delay),
      ])
  }

  /// A packet's bytes and side data, but not its times.
  mutating func combine(_ packet: borrowing Packet) {
    let flags = packet.pointer.pointee.flags
    let hasTime: Int64 = packet.presentationTicks == nil ? 0 : 1
    packet.withBytes { combine($0, [Int64(flags), hasTime]) }
    for index in 0..<Int(packet.pointer.pointee.side_data_elems) {
      let data = packet.pointer.pointee.side_data[index]
      combine(UnsafeRawBufferPointer(start: data.data, count: Int(data.size)), [Int64(data.type.rawValue)])
    }
  }
}
