internal import ReelCore

extension Demuxer {
  /// The best video stream by ffmpeg's order. Waits for a stream that is announced late.
  func videoStream() throws -> StreamInfo {
    let isVideo = { (stream: StreamInfo) in stream.kind == .video && !stream.isAttachedFrame }
    guard try awaitStream(where: isVideo) != nil else { throw noStream("no video in the media") }
    let candidates = streams.filter(isVideo)
    // ffmpeg's order: by pixels, with five million added for the default disposition (fftools/ffmpeg_opt.c); of
    // equals, the first.
    let score = { (stream: StreamInfo) in
      (stream.size.map { $0.width * $0.height } ?? 0) + (stream.isDefault ? 5_000_000 : 0)
    }
    let decodable = candidates.filter { $0.videoCodec != nil }
    guard let best = decodable.max(by: { score($0) < score($1) }) ?? candidates.first else {
      throw ReelError(.badMedia, "no video in the media")
    }
    if best.videoCodec?.isMPEGVideo == true, format == .mpegTS || !best.hasExtradata {
      return try mpegStream(best.index)
    }
    switch format {
    case .flv: return try streamAtFirstPacket(best.index)
    case .mpegPS: return try mpegStream(best.index)
    default: return best
    }
  }

  /// A stream of MPEG video. If the container has no headers, they are taken from the first packet: a decoder that
  /// starts later in the stream needs them, and decoding Xvid depends on them.
  private func mpegStream(_ index: Int) throws -> StreamInfo {
    parsePackets()
    let stream = try streamAtFirstPacket(index)
    guard let codec = stream.videoCodec, !stream.hasExtradata,
      let headers = firstPacket(
        of: index,
        { bytes in
          MPEGPicture(codec: codec, bytes: bytes).map { bytes.prefix($0.offset).map { $0 } } ?? []
        }), !headers.isEmpty
    else { return stream }
    return try stream.with(extradata: headers)
  }

  /// The best audio stream of a container that is opened for it.
  func audioStream(languages: [String]) throws -> StreamInfo {
    guard try awaitStream(where: { $0.kind == .audio }) != nil,
      let best = Self.bestAudio(of: streams, languages: languages)
    else { throw noStream("no audio that can be decoded") }
    return best
  }

  /// An error that says what there is none of, and which streams there are.
  private func noStream(_ text: String) -> ReelError {
    let names = streams.map { "\($0.isAttachedFrame ? "cover art" : $0.kind.rawValue) (\($0.codecName))" }
    return ReelError(
      .badMedia,
      names.isEmpty ? "no streams in the media" : "\(text), only \(names.joined(separator: ", "))")
  }

  /// The audio stream that is played: of the most wanted language, then the default one, then the one with the most
  /// channels; the first of equals. Nil if none can be decoded.
  static func bestAudio(of streams: [StreamInfo], languages: [String]) -> StreamInfo? {
    let rank = { (stream: StreamInfo) -> Int in
      let language = stream.language?.lowercased() ?? ""
      return languages.firstIndex { language.hasPrefix($0.lowercased()) } ?? languages.count
    }
    return
      streams
      .filter { $0.kind == .audio && $0.audioCodec != nil }
      .min { left, right in
        let (first, second) = (rank(left), rank(right))
        if first != second { return first < second }
        if left.isDefault != right.isDefault { return left.isDefault }
        return (left.channelCount ?? 0) > (right.channelCount ?? 0)
      }
  }
}
