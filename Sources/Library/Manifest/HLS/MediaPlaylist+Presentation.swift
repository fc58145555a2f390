import Foundation
import ReelCore

extension MediaPlaylist {
  /// The segments with absolute URLs, made when they are asked for.
  func segments(url: URL, limits: ManifestLimits) -> SegmentList {
    let resolver = URLResolver(base: url, limit: limits.urlByteCount)
    // A few maps are converted in advance, many on demand.
    let ready = maps.count <= 64 ? maps.map { InitializationReference($0, resolver: resolver) } : []
    return SegmentList(count: segmentCount, end: duration) { index in
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

  /// The segments of a rung's playlist.
  func playlistSegments(url: URL, limits: ManifestLimits) -> MediaPlaylistSegments {
    MediaPlaylistSegments(
      segments: segments(url: url, limits: limits), live: liveTiming,
      hasIndependentSegments: hasIndependentSegments, startOffset: startOffset, warnings: warnings)
  }

  /// A presentation of this playlist alone: one period, one group, one rung.
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

  /// How to follow the playlist. Playback begins three target durations from the end (RFC 8216 §6.3.3), or
  /// HOLD-BACK if stated (draft-pantos-hls-rfc8216bis §4.4.3.8).
  ///
  /// Without a target duration, or with 0, the longest segment's duration is used, or else a second.
  private var liveTiming: LiveTiming? {
    guard isLive else { return nil }
    let stated = targetDuration.flatMap { $0 > .zero ? $0 : nil }
    let target = stated ?? longestDuration ?? MediaTime(value: 1, timescale: 1)
    let holdBack = holdBack.flatMap { $0 > .zero ? $0 : nil }
    return LiveTiming(reload: .targetDuration(target), delay: holdBack ?? target * 3)
  }

  /// Nil if no segment lasts any time.
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
  /// The encryption that these keys name, nil if there are none. Of several key formats the plain one
  /// (`identity`) is taken, else the first, by the name of its DRM.
  ///
  /// The IV of a plain key that states none is the segment's number, big endian (RFC 8216 §5.2).
  init?(_ keys: [MediaPlaylist.Key], number: Int64?, resolver: URLResolver) {
    guard let key = keys.first(where: { $0.keyFormat == "identity" }) ?? keys.first else { return nil }
    let drm = key.keyFormat == "identity" ? nil : ProtectionScheme.name(forKeyFormat: key.keyFormat)
    var vector = key.initializationVector
    if vector == nil, drm == nil, let number {
      vector = [UInt8](repeating: 0, count: 8) + withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
    var systems: [String] = []
    for key in keys where drm != nil && key.keyFormat != "identity" {
      let name = ProtectionScheme.name(forKeyFormat: key.keyFormat)
      if !systems.contains(name) { systems.append(name) }
    }
    self.init(
      method: drm ?? key.method, keyURL: key.reference.flatMap { try? resolver.resolve($0) },
      keyFormat: key.keyFormat, initializationVector: vector,
      // Some packagers write ISO-23001-7 for SAMPLE-AES-CTR.
      encryptsSamples: key.method.hasPrefix("SAMPLE-AES") || key.method == "ISO-23001-7", systems: systems)
  }
}
