import Foundation
package import ReelCore

/// A media playlist (RFC 8216 §4.3.3): the segments of one variant or rendition.
///
/// It keeps its text and, for each segment, positions in it. A segment is created when it is accessed. 50,000
/// segments take the text and 1.2 MB.
package struct MediaPlaylist: Sendable {
  /// EXT-X-TARGETDURATION (RFC 8216 §4.3.3.1).
  package internal(set) var targetDuration: MediaTime?
  /// EXT-X-MEDIA-SEQUENCE plus the number of segments that EXT-X-SKIP stands for: the number of the first
  /// listed segment (RFC 8216 §4.3.3.2).
  package internal(set) var mediaSequence: Int64 = 0
  /// EXT-X-PLAYLIST-TYPE is `VOD` (RFC 8216 §4.3.3.5).
  package internal(set) var isVOD = false
  /// EXT-X-ENDLIST (RFC 8216 §4.3.3.4).
  package internal(set) var hasEndList = false
  /// EXT-X-INDEPENDENT-SEGMENTS (RFC 8216 §4.3.5.1).
  package internal(set) var hasIndependentSegments = false
  /// EXT-X-I-FRAMES-ONLY: each segment is one I-frame (RFC 8216 §4.3.3.6).
  package internal(set) var holdsIFramesOnly = false
  /// EXT-X-IMAGES-ONLY: each segment is an image (Image Media Playlist 0.4). Also true with an EXT-X-TILES alone.
  package internal(set) var holdsImagesOnly = false
  /// Each EXT-X-TILES that differs from the one before it, in order.
  package internal(set) var tiles: [ImageTiles] = []
  /// EXT-X-START (RFC 8216 §4.3.5.2).
  package internal(set) var startOffset: StartOffset?
  /// Each EXT-X-MAP, in order (RFC 8216 §4.3.2.5).
  package internal(set) var maps: [Map] = []
  /// The keys in force together, a set for each change (RFC 8216 §4.3.2.4).
  package internal(set) var keySets: [[Key]] = []
  /// HOLD-BACK of EXT-X-SERVER-CONTROL: the minimum distance from the end at which playback begins
  /// (draft-pantos-hls-rfc8216bis §4.4.3.8).
  package internal(set) var holdBack: MediaTime?
  /// Invalid text that was ignored.
  package internal(set) var warnings: [ReelError] = []

  let bytes: [UInt8]
  var records: [Record] = []
  var runs: [Run] = []
  /// One for each segment, or empty if no segment has one.
  var byteRanges: [ByteRange?] = []
  /// References with variables, and those of segments whose variables were replaced.
  var substituted: [Int: String] = [:]
  /// Each EXT-X-PROGRAM-DATE-TIME, by rising index of its segment.
  var programDateTimes: [DateMark] = []
  /// The sum of all durations.
  var length = ExactSeconds.zero
  /// The most digits that a duration has after the point, trailing zeros included.
  var decimalCount = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// The position of a segment in `bytes`, and its start time.
  struct Record: Sendable {
    var reference: UInt32
    var referenceCount: UInt32
    var run: UInt32
    /// Nanoseconds, rounded down.
    var start: Int64
  }

  /// The position in `bytes` of a segment's date.
  struct DateMark: Sendable {
    var segment: UInt32
    var position: UInt32
    var count: UInt32
  }

  /// The properties that a run of segments shares.
  struct Run: Sendable, Hashable {
    var map: Int?
    var keySet: Int?
    var discontinuity: Int
    var isGap: Bool
    var tiles: Int?
  }
}

// MARK: - Segments

extension MediaPlaylist {
  package var segmentCount: Int { records.count }

  /// The sum of all durations.
  package var duration: MediaTime { timescale.time(nanoseconds: length.nanoseconds) }

  /// True if more segments may follow.
  package var isLive: Bool { !hasEndList && !isVOD }

  /// EXT-X-PROGRAM-DATE-TIME of this segment, if it is a valid date.
  func programDateTime(at index: Int) -> WallTime? {
    let after = programDateTimes.indices.bisect { programDateTimes[$0].segment > index }
    guard after > 0, programDateTimes[after - 1].segment == index else { return nil }
    let mark = programDateTimes[after - 1]
    return WallTime(iso8601: bytes.text(in: Int(mark.position)..<Int(mark.position) + Int(mark.count)))
  }

  /// Returns the URL of a segment as the playlist writes it, with variables replaced.
  func reference(at index: Int) -> String {
    if let text = substituted[index] { return text }
    let record = records[index]
    return bytes.text(in: Int(record.reference)..<Int(record.reference) + Int(record.referenceCount))
  }

  /// Returns the sum of the durations before `index`.
  func start(at index: Int) -> MediaTime {
    timescale.time(nanoseconds: index < records.count ? records[index].start : length.nanoseconds)
  }

  // MARK: - Private

  /// Durations are whole seconds before version 3 (RFC 8216 §4.3.2.1), and some writers round them later too.
  private var precision: SegmentList.Precision {
    if decimalCount < 3 { return .rounded }
    // The last segment has the rest.
    return records.allSatisfy { $0.start.isMultiple(of: 1_000_000_000) } ? .whole : .exact
  }

  private var timescale: DecimalTimescale { DecimalTimescale(digits: length.digits) }
}

extension MediaPlaylist {
  /// EXT-X-KEY or EXT-X-SESSION-KEY (RFC 8216 §4.3.2.4): how segments are encrypted.
  package struct Key: Sendable, Hashable {
    /// METHOD: `NONE`, `AES-128`, `SAMPLE-AES`, or another.
    package var method: String
    /// URI.
    package var reference: String?
    /// IV: 16 bytes.
    package var initializationVector: [UInt8]?
    /// KEYFORMAT; `identity` if it has none.
    package var keyFormat: String
    /// KEYFORMATVERSIONS.
    package var keyFormatVersions: String?
    /// KEYID, which some packagers add: the id of the key as a hexadecimal number.
    package var keyID: KeyID?

    init(_ attributes: AttributeList, place: ReelError.Place) throws(ReelError) {
      guard let method = attributes["METHOD"] else {
        throw ReelError(.badManifest, "EXT-X-KEY has no METHOD", place: place)
      }
      self.method = method.uppercased()
      reference = attributes["URI"]
      keyFormat = attributes["KEYFORMAT"] ?? "identity"
      keyFormatVersions = attributes["KEYFORMATVERSIONS"]
      keyID = attributes["KEYID"].flatMap { $0.lowercased().hasPrefix("0x") ? KeyID($0.dropFirst(2)) : nil }
      guard let text = attributes["IV"] else { return }
      guard let bytes = Self.hexadecimal(text) else {
        throw ReelError(
          .badManifest, "the IV '\(text.excerpt)' is not a hexadecimal number of 128 bits", place: place)
      }
      initializationVector = bytes
    }

    /// The name of the DRM system that has the key; the KEYFORMAT if it is unknown.
    fileprivate var systemName: String { ProtectionSystem(keyFormat: keyFormat)?.name ?? keyFormat.excerpt }

    /// Parses a 128-bit number, `0x…`, big endian; leading zeros may be missing.
    private static func hexadecimal(_ text: String) -> [UInt8]? {
      let lowercased = text.lowercased()
      guard lowercased.hasPrefix("0x") else { return nil }
      let digits = lowercased.utf8.dropFirst(2)
      guard (1...32).contains(digits.count) else { return nil }
      var bytes = [UInt8](repeating: 0, count: 16)
      for (place, digit) in digits.reversed().enumerated() {
        guard let value = digit.hexDigitValue else { return nil }
        bytes[15 - place / 2] |= place % 2 == 0 ? value : value << 4
      }
      return bytes
    }
  }
}

extension MediaPlaylist {
  /// EXT-X-MAP (RFC 8216 §4.3.2.5): the bytes that come before the segments that follow.
  package struct Map: Sendable, Hashable {
    /// URI.
    package var reference: String
    /// BYTERANGE; the offset is 0 if it has none.
    package var byteRange: ByteRange?
    /// The preceding EXT-X-KEY tags, which encrypt it.
    package var keys: [Key]

    init(_ attributes: AttributeList, keys: [Key], place: ReelError.Place) throws(ReelError) {
      guard let reference = attributes["URI"] else {
        throw ReelError(.badManifest, "EXT-X-MAP has no URI", place: place)
      }
      self.reference = reference
      self.keys = keys
      if let text = attributes["BYTERANGE"] {
        let bytes = Array(text.utf8)
        let range = try ByteRangeText(bytes, in: 0..<bytes.count, place: place)
        byteRange = try range.byteRange(implicitOffset: 0, place: place)
      }
    }
  }
}

extension MediaPlaylist {
  /// Returns the segments with absolute URLs, which are created when they are accessed.
  func segments(url: URL, limits: ManifestLimits) -> SegmentList {
    let resolver = URLResolver(base: url, limit: limits.urlByteCount)
    // A few maps are converted in advance, many on demand.
    let ready = maps.count <= 64 ? maps.map { InitializationReference($0, resolver: resolver) } : []
    return SegmentList(count: segmentCount, end: duration, precision: precision) { index in
      let run = runs[Int(records[index].run)]
      let start = start(at: index)
      let number = mediaSequence + Int64(index)
      var segment = SegmentReference(
        number: number, url: resolver.url(reference(at: index)),
        byteRange: byteRanges.isEmpty ? nil : byteRanges[index], start: start,
        duration: self.start(at: index + 1) - start,
        initialization: run.map.map {
          ready.isEmpty ? InitializationReference(maps[$0], resolver: resolver) : ready[$0]
        },
        encryption: run.keySet.flatMap { SegmentEncryption(keySets[$0], number: number, resolver: resolver) },
        discontinuity: run.discontinuity, isGap: run.isGap,
        programDateTime: programDateTimes.isEmpty ? nil : programDateTime(at: index))
      segment.tiles = run.tiles.map { tiles[$0] }
      return segment
    }
  }

  /// Returns the segments of a rung's playlist.
  func playlistSegments(url: URL, limits: ManifestLimits) -> MediaPlaylistSegments {
    MediaPlaylistSegments(
      segments: segments(url: url, limits: limits), live: liveTiming,
      hasIndependentSegments: hasIndependentSegments, startOffset: startOffset, warnings: warnings)
  }

  /// Returns a presentation of this playlist alone: one period, one group, one rung.
  func presentation(url: URL, limits: ManifestLimits) -> Presentation {
    let length = isLive ? nil : duration
    let list = segments(url: url, limits: limits)
    var rung = Rung(
      id: "0", bitsPerSecond: nil, hasIndependentSegments: hasIndependentSegments, media: .segments(list))
    if holdsImagesOnly {
      rung.tiles = list.first?.tiles ?? ImageTiles()
      rung.size = rung.tiles?.size
    } else {
      rung.holdsKeyFramesOnly = holdsIFramesOnly
    }
    let group = TrackGroup(
      id: nil, kind: holdsImagesOnly ? .image : .video, language: nil, label: nil, roles: [], isDefault: true,
      rungs: [rung])
    let period = Period(id: nil, start: .zero, duration: length, trackGroups: [group])
    return Presentation(
      format: .hls, live: liveTiming, duration: length, periods: [period], warnings: warnings,
      startOffset: startOffset)
  }

  /// The timing for following the playlist. Playback begins three target durations from the end (RFC 8216
  /// §6.3.3), or HOLD-BACK if stated (draft-pantos-hls-rfc8216bis §4.4.3.8).
  ///
  /// Without a target duration, or with 0, the longest segment's duration is used, or else a second.
  private var liveTiming: LiveTiming? {
    guard isLive else { return nil }
    let stated = targetDuration.flatMap { $0 > .zero ? $0 : nil }
    let target = stated ?? longestDuration ?? MediaTime(value: 1, timescale: 1)
    let holdBack = holdBack.flatMap { $0 > .zero ? $0 : nil }
    return LiveTiming(reload: .targetDuration(target), delay: holdBack ?? target * 3)
  }

  /// Nil if no segment has a duration above 0.
  private var longestDuration: MediaTime? {
    let longest = (0..<segmentCount).lazy.map { self.start(at: $0 + 1) - self.start(at: $0) }.max()
    return longest.flatMap { $0 > .zero ? $0 : nil }
  }
}

extension InitializationReference {
  fileprivate init(_ map: MediaPlaylist.Map, resolver: URLResolver) {
    self.init(
      url: resolver.url(map.reference), byteRange: map.byteRange,
      encryption: SegmentEncryption(map.keys, number: nil, resolver: resolver))
  }
}

extension SegmentEncryption {
  /// The encryption that these keys name, nil if there are none. Of several key formats, the plain one
  /// (`identity`) is used, or else the first, by the name of its DRM.
  ///
  /// The IV of a plain key that states none is the segment's number, big endian (RFC 8216 §5.2).
  init?(_ keys: [MediaPlaylist.Key], number: Int64?, resolver: URLResolver) {
    guard let key = keys.first(where: { $0.keyFormat == "identity" }) ?? keys.first else { return nil }
    let drm = key.keyFormat == "identity" ? nil : key.systemName
    var vector = key.initializationVector
    if vector == nil, drm == nil, let number {
      vector = [UInt8](repeating: 0, count: 8) + withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
    var systems: [String] = []
    for key in keys where drm != nil && key.keyFormat != "identity" {
      if !systems.contains(key.systemName) { systems.append(key.systemName) }
    }
    self.init(
      method: drm ?? key.method, keyURL: key.reference.flatMap { try? resolver.resolve($0) },
      keyFormat: key.keyFormat, initializationVector: vector,
      // Some packagers write ISO-23001-7 for SAMPLE-AES-CTR.
      encryptsSamples: key.method.hasPrefix("SAMPLE-AES") || key.method == "ISO-23001-7", systems: systems,
      systemKeys: keys.compactMap { Key($0, resolver: resolver) })
  }
}

extension SegmentEncryption.Key {
  /// Nil for a plain key, or without a URI.
  fileprivate init?(_ key: MediaPlaylist.Key, resolver: URLResolver) {
    guard key.keyFormat != "identity", let reference = key.reference else { return nil }
    // A system takes its URI as text, so an absolute one stays as it is written.
    let scheme = reference.utf8.prefix { $0 != UInt8(ascii: ":") }
    let isAbsolute =
      scheme.count < reference.utf8.count
      && scheme.allSatisfy { $0.isDigit || "+-.".utf8.contains($0) || (0x41...0x5a).contains($0 & 0xdf) }
    let resolved =
      isAbsolute ? nil : (try? resolver.resolve(reference))?.absoluteString.withoutUserInformation
    guard let uri = isAbsolute ? reference : resolved else { return nil }
    self.init(
      method: key.method, uri: uri, keyFormat: key.keyFormat, keyFormatVersions: key.keyFormatVersions,
      keyID: key.keyID, initializationVector: key.initializationVector)
  }
}

/// The segments of one rung's media playlist.
package struct MediaPlaylistSegments: Sendable {
  /// In order. Empty only if more may follow.
  package var segments: SegmentList
  /// The timing for following the playlist if more segments may come: it has neither EXT-X-ENDLIST nor the
  /// type `VOD` (RFC 8216 §4.3.3.4, §4.3.3.5).
  package var live: LiveTiming?
  /// True if each segment can be decoded on its own (RFC 8216 §4.3.5.1).
  package var hasIndependentSegments: Bool
  /// The position at which playback begins by default; nil if the playlist states none.
  package var startOffset: StartOffset?
  /// Invalid text that was ignored.
  package var warnings: [ReelError]

  /// True if more segments may follow.
  package var isLive: Bool { live != nil }
}
