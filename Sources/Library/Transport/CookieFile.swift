public import ReelCore

/// Cookies for requests, read from a file in Netscape format, as curl and browser extensions write it.
///
/// Each line has seven fields with tabs between them: domain, `TRUE` if subdomains get the cookie too, path, `TRUE` if
/// only `https` requests get it, expiry in seconds since 1970 (0 for none), name, and value. Lines that begin with `#`
/// are comments, except for `#HttpOnly_` before a domain. The file is only read: a fetcher keeps in memory what servers
/// change.
public struct CookieFile: Sendable, Hashable {
  /// The largest file that is read: 1 MiB.
  package static let byteLimit = 1 << 20

  private(set) var cookies: [Cookie] = []

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
          name: fields[5], value: fields[6],
          domain: fields[0].lowercased().trimmingPrefix(".").description,
          includesSubdomains: fields[1].uppercased() == "TRUE" || fields[0].hasPrefix("."),
          path: fields[2], isSecure: fields[3].uppercased() == "TRUE", expiry: expiry == 0 ? nil : expiry))
    }
  }
}
