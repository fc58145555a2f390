public import Foundation
public import ReelCore

/// The source of media: a URL or standard input.
public enum MediaSource: Sendable, Hashable {
  /// An `http`, `https` or `file` URL of a media file, an HLS playlist or a DASH MPD.
  case url(URL)
  /// The process's standard input.
  case standardInput

  /// Creates a source from a command line argument: a URL, a path, or `-` for standard input.
  ///
  /// Throws `ReelError.usage` if the argument is empty or is not a valid URL, and `unsupported` for a URL with another
  /// scheme or a file on another host.
  public init(argument: String) throws(ReelError) {
    if argument == "-" {
      self = .standardInput
      return
    }
    guard !argument.isEmpty else { throw ReelError(.usage, "the source is empty") }
    guard let scheme = Self.scheme(of: argument) else {
      self = .url(URL(fileURLWithPath: argument))
      return
    }
    guard ["http", "https", "file"].contains(scheme) else {
      throw ReelError(
        .unsupported, "the scheme \(scheme) is not supported", at: argument,
        advice: "use http, https, file or a path")
    }
    guard let url = URL(string: argument), scheme == "file" || url.host?.isEmpty == false,
      url.port.map({ (1...65535).contains($0) }) ?? true
    else {
      throw ReelError(.usage, "not a valid URL", at: argument)
    }
    if scheme == "file", let host = url.host, !host.isEmpty, host != "localhost" {
      throw ReelError(.unsupported, "files of another host can't be read", at: argument)
    }
    self = .url(url)
  }

  /// The source's name in messages: the path of a file, `standard input`, or else the URL.
  public var name: String {
    switch self {
    case .standardInput: "standard input"
    case .url(let url): url.reelName
    }
  }

  /// The URL; nil for standard input.
  package var url: URL? { if case .url(let url) = self { url } else { nil } }

  /// The URL that a relative path may have been meant for: `http://example.com/a.mp4` for `example.com/a.mp4`. Nil for other
  /// paths, and for URLs.
  package var probableURL: String? {
    guard case .url(let url) = self, url.isFileURL, url.baseURL != nil else { return nil }
    let path = url.relativePath
    guard let match = path.prefixMatch(of: /([A-Za-z0-9.-]+)(?::([0-9]{1,5}))?(?:\/|$)/) else { return nil }
    let labels = match.1.split(separator: ".", omittingEmptySubsequences: false)
    guard labels.allSatisfy({ !$0.isEmpty }) else { return nil }
    let isAddress = labels.count == 4 && labels.allSatisfy { UInt8($0) != nil }
    let isDomain = labels.count > 1 && labels.last.map { $0.count > 1 && $0.allSatisfy(\.isLetter) } ?? false
    // The name of a file, such as a.mov, is no domain.
    let isHost = match.2 != nil || path.contains("/") && (isAddress || isDomain || match.1 == "localhost")
    return isHost ? "\(match.2 == "443" ? "https" : "http")://\(path)" : nil
  }

  /// A short name for labels and output files: the last component of the URL's path without its extension,
  /// the folder above it if that is too common (`master`, `index`, …), the host if no component is specific,
  /// or `stdin`.
  package var stem: String {
    guard case .url(let url) = self else { return "stdin" }
    let stem = url.deletingPathExtension().lastPathComponent
    guard !stem.isEmpty, stem != "/" else { return url.host ?? "source" }
    guard Self.commonStems.contains(stem.lowercased()) else { return stem }
    let folders = url.absoluteURL.deletingLastPathComponent().pathComponents.filter { $0 != "/" }
    return folders.last { !Self.commonStems.contains($0.lowercased()) } ?? url.host ?? stem
  }

  /// Common names of files and folders.
  private static let commonStems: Set = [
    "master", "index", "manifest", "playlist", "stream", "video", "prog_index",
  ]

  /// Returns the scheme of an argument that looks like a URL; nil for a path. A single letter before a colon
  /// is a drive, not a scheme.
  private static func scheme(of argument: String) -> String? {
    guard let colon = argument.firstIndex(of: ":") else { return nil }
    let scheme = argument[..<colon]
    guard scheme.count > 1, scheme.first?.isLetter == true,
      scheme.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }),
      argument[colon...].hasPrefix("://") || scheme == "file" || scheme == "data"
    else { return nil }
    return scheme.lowercased()
  }
}

extension URL {
  /// Returns a file's path, otherwise the URL without user name and password.
  ///
  /// The contents of a `data:` URL are left out because they may be a key.
  package var reelName: String {
    if isFileURL { return path }
    return scheme?.lowercased() == "data" ? "data:" : absoluteString.withoutUserInformation
  }
}
