internal import ReelCore

extension MP4Layout {
  /// Finds whether the track descriptions (`Tracks`) of a Matroska or WebM file precede the media. Some files have
  /// them after the media, where only `SeekHead` leads to them (RFC 9559 §4.5, §5.1.1).
  ///
  /// - Parameter bytes: The first bytes of the file.
  init(matroskaPrefix bytes: [UInt8]) {
    var rest = bytes[...]
    var isInSegment = false
    while let element = EBMLHeader(rest) {
      rest = rest.dropFirst(element.headerByteCount)
      switch element.id {
      case EBMLHeader.ID.segment where !isInSegment:
        isInSegment = true
        continue
      case EBMLHeader.ID.tracks where isInSegment:
        self = .indexFirst(isFragmented: false)
        return
      case EBMLHeader.ID.cluster where isInSegment:
        self = .indexLast
        return
      default: break
      }
      guard let size = element.contentByteCount else { break }
      rest = rest.dropFirst(Int(clamping: size))
    }
    self = .unknown
  }
}
