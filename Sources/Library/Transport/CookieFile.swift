internal import Foundation
public import ReelCore

/// Cookies for requests, read from a file in Netscape format, as curl and browser extensions write it.
///
/// Each line has seven fields with tabs between them: domain, `TRUE` if subdomains get the cookie too, path, `TRUE` if
/// only `https` requests get it, expiry in seconds since 1970 (0 for none), name, and value. Lines that begin with `#`
/// are comments, except for `#HttpOnly_` before a domain. The file is only read: cookies that servers set are ignored.
public struct CookieFile: Sendable, Hashable {
  /// The largest file that is read: 1 MiB.
  package static let byteLimit = 1 << 20

  private struct Cookie: Sendable, Hashable {
    var domain: String
    var includesSubdomains: Bool
    var path: String
    var isSecure: Bool
    /// Seconds since 1970; 0 for none.
    var expiry: Int64
    var name: String
    var value: String
  }

  private var cookies: [Cookie] = []

  /// Parses a file.
  ///
  /// - Throws: `ReelError` of kind `usage`, with the line number, for a line that is not a cookie.
  public init(_ text: String) throws(ReelError) {
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .enumerated()
    {
      var line = line
      if line.hasPrefix("#HttpOnly_") { line = line.dropFirst("#HttpOnly_".count) }
      if line.hasPrefix("#") || line.allSatisfy(\.isWhitespace) { continue }
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      guard fields.count == 7, !fields[0].isEmpty, fields[2].hasPrefix("/"), !fields[5].isEmpty,
        let expiry = Int64(fields[4]),
        line.utf8.allSatisfy({ $0 >= 0x20 || $0 == 0x09 })
      else {
        throw ReelError(
          .usage, "not a cookie: expected seven fields separated by tabs", place: .line(index + 1))
      }
      cookies.append(
        Cookie(
          domain: fields[0].lowercased().trimmingPrefix(".").description,
          includesSubdomains: fields[1].uppercased() == "TRUE" || fields[0].hasPrefix("."),
          path: fields[2], isSecure: fields[3].uppercased() == "TRUE", expiry: expiry, name: fields[5],
          value: fields[6]))
    }
  }

  /// Returns the value of the `Cookie` header field (RFC 6265 §5.4) for a URL; nil if no cookie applies to
  /// it.
  func header(for url: URL, now: Date = Date()) -> String? {
    guard let host = url.host()?.lowercased() else { return nil }
    let path = url.path().isEmpty ? "/" : url.path()
    let isSecure = url.scheme?.lowercased() == "https"
    let found = cookies.filter { cookie in
      (host == cookie.domain || cookie.includesSubdomains && host.hasSuffix("." + cookie.domain))
        && Self.covers(cookie.path, path) && (isSecure || !cookie.isSecure)
        && (cookie.expiry == 0 || Double(cookie.expiry) > now.timeIntervalSince1970)
    }
    guard !found.isEmpty else { return nil }
    // Longer paths come first (RFC 6265 §5.4), otherwise in file order.
    let ordered = found.enumerated().sorted {
      ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset)
    }
    return ordered.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
  }

  // MARK: - Private

  /// RFC 6265 §5.1.4.
  private static func covers(_ cookiePath: String, _ path: String) -> Bool {
    guard path.hasPrefix(cookiePath) else { return false }
    return cookiePath.hasSuffix("/") || path.count == cookiePath.count
      || path.dropFirst(cookiePath.count).hasPrefix("/")
  }
}
