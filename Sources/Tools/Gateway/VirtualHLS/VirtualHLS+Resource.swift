package import Foundation
import ReelManifest

extension VirtualHLS {
  /// The target of a URI in a media playlist: always a whole resource. If only some bytes of it are meant, the
  /// playlist says so (EXT-X-BYTERANGE, the BYTERANGE of EXT-X-MAP).
  package struct Resource: Sendable, Hashable {
    package enum Kind: String, Sendable {
      /// Named by EXT-X-MAP.
      case initialization = "init"
      /// A segment that is a resource of its own.
      case segment = ""
      /// A file that segments are parts of.
      case file
      /// The key of segments (EXT-X-KEY).
      case key
      /// The key of an initialization.
      case initializationKey = "initkey"
      /// A placeholder while a period lacks the track (EXT-X-GAP): a `data:` URL, for players that request it
      /// anyway.
      case gap
    }

    package let kind: Kind
    package let url: URL
    /// The same bytes elsewhere, by falling preference.
    package let alternateURLs: [URL]
    /// A name that is unique in the track, fit for a path and with the extension that players look at: `12.m4s`,
    /// `init-0.mp4`, `file-0.mp4`.
    package let name: String
    /// The media type (RFC 9110 §8.3.1).
    package let mediaType: String
  }
}

extension VirtualHLS.Track {
  /// The resource of this name, as the media playlist writes it; nil if there is none.
  package func resource(named name: some StringProtocol) -> VirtualHLS.Resource? {
    if let filler, filler.name == String(name) { return filler }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let words = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    let kind = words.count == 1 ? .segment : VirtualHLS.Resource.Kind(rawValue: String(words[0]))
    guard words.count <= 2, let kind, let number = words.last, number.utf8.allSatisfy(\.isDigit),
      let index = Int(number), let segment = segment(at: index)
    else { return nil }
    let resource: VirtualHLS.Resource?
    switch kind {
    case .initialization: resource = segment.initialization.map { initialization($0, at: index) }
    case .segment: resource = segment.byteRange == nil ? media(of: segment, at: index) : nil
    case .file: resource = segment.byteRange == nil ? nil : media(of: segment, at: index)
    case .key: resource = segment.encryption.flatMap { key($0, .key, at: index) }
    case .initializationKey:
      resource = segment.initialization?.encryption.flatMap { key($0, .initializationKey, at: index) }
    case .gap: resource = nil
    }
    // Each resource has exactly one name: not `012.m4s`.
    return resource?.name == String(name) ? resource : nil
  }

  // MARK: - For the playlist

  /// The resource that holds a segment.
  func media(of segment: SegmentReference, at index: Int) -> VirtualHLS.Resource {
    let isPart = segment.byteRange != nil
    return VirtualHLS.Resource(
      kind: isPart ? .file : .segment, url: segment.url, alternateURLs: segment.alternateURLs,
      name: isPart
        ? "file-\(index).\(container.fileExtension)" : "\(index).\(container.segmentExtension)",
      mediaType: container.mediaType(for: kind))
  }

  func initialization(_ reference: InitializationReference, at index: Int) -> VirtualHLS.Resource {
    VirtualHLS.Resource(
      kind: .initialization, url: reference.url, alternateURLs: reference.alternateURLs,
      name: "init-\(index).\(container.fileExtension)", mediaType: container.mediaType(for: kind))
  }

  /// Nil if a key is named that is no resource, as `skd:` does.
  func key(
    _ encryption: SegmentEncryption, _ kind: VirtualHLS.Resource.Kind, at index: Int
  ) -> VirtualHLS.Resource? {
    guard let url = encryption.keyURL, let scheme = url.scheme?.lowercased(),
      ["http", "https", "file", "data"].contains(scheme)
    else { return nil }
    return VirtualHLS.Resource(
      kind: kind, url: url, alternateURLs: [], name: "\(kind.rawValue)-\(index).key",
      mediaType: "application/octet-stream")
  }

  /// The name of placeholder segments; nil if the track has none.
  ///
  /// Not every player respects EXT-X-GAP: FFmpeg 5.1 requests all of these segments, Chromium the first. Such a
  /// player gets an empty segment (in MP4 an empty `free` box, ISO/IEC 14496-12 §8.1.2), which does less harm
  /// than an error.
  var filler: VirtualHLS.Resource? {
    guard parts.contains(where: \.isFiller),
      let url = URL(string: container == .mp4 ? "data:video/mp4;base64,AAAACGZyZWU=" : "data:,")
    else { return nil }
    return VirtualHLS.Resource(
      kind: .gap, url: url, alternateURLs: [],
      name: "gap.\(container.segmentExtension)", mediaType: container.mediaType(for: kind))
  }
}
