package import Foundation

/// A cookie, and the requests that carry it (RFC 6265 §5.3).
package struct Cookie: Sendable, Hashable {
  package var name: String
  package var value: String
  /// The host in lower case, without a dot at its beginning.
  package var domain: String
  package var includesSubdomains: Bool
  package var path: String
  /// True if it is for `https` alone.
  package var isSecure: Bool
  /// Seconds since 1970; nil for none.
  package var expiry: Int64?

  package init(
    name: String, value: String, domain: String, includesSubdomains: Bool, path: String, isSecure: Bool,
    expiry: Int64?
  ) {
    self.name = name
    self.value = value
    self.domain = domain
    self.includesSubdomains = includesSubdomains
    self.path = path
    self.isSecure = isSecure
    self.expiry = expiry
  }

  /// Parses a `Set-Cookie` field of a response from `url` (RFC 6265 §5.2).
  ///
  /// - Returns: Nil for a field that is not a cookie, or one that the server of `url` may not set: for another domain,
  ///   for one that many owners share, or a `Secure` one over `http`.
  init?(setBy field: String, of url: URL, now: Int64) {
    guard let host = url.host(percentEncoded: false)?.lowercased(), field.utf8.count <= Self.byteLimit,
      field.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 })
    else { return nil }
    let parts = field.split(separator: ";", omittingEmptySubsequences: false)
    guard let first = parts.first, let equals = first.firstIndex(of: "=") else { return nil }
    let name = first[..<equals].trimmed
    guard !name.isEmpty else { return nil }
    self.init(
      name: name, value: first[first.index(after: equals)...].trimmed, domain: host,
      includesSubdomains: false, path: Self.defaultPath(of: url), isSecure: false, expiry: nil)
    var maximumAge: Int64?
    for part in parts.dropFirst() {
      let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
      let text = halves.count > 1 ? halves[1] : ""
      switch halves[0].lowercased() {
      case "domain":
        let stated = text.lowercased().trimmingPrefix(".")
        if !stated.isEmpty {
          domain = String(stated)
          includesSubdomains = true
        }
      case "path": path = text.hasPrefix("/") ? text : Self.defaultPath(of: url)
      case "secure": isSecure = true
      case "max-age":
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy(\.isDigit) else { continue }
        maximumAge = Int64(text) ?? (text.hasPrefix("-") ? .min : .max)
      case "expires": expiry = Self.seconds(text) ?? expiry
      default: continue
      }
    }
    if let maximumAge {
      // An age of many years is no end.
      expiry = maximumAge <= 0 ? now : maximumAge < 1 << 40 ? now + maximumAge : nil
    }
    if includesSubdomains {
      if domain == host {
        includesSubdomains = !url.isAddress && !Self.isShared(domain)
      } else if url.isAddress || !host.hasSuffix("." + domain) || Self.isShared(domain) {
        return nil
      }
    }
    if isSecure, url.scheme?.lowercased() != "https" { return nil }
  }

  package func applies(to url: URL, now: Int64) -> Bool {
    guard let host = url.host(percentEncoded: false)?.lowercased() else { return false }
    let path = url.path().isEmpty ? "/" : url.path()
    return (host == domain || includesSubdomains && !url.isAddress && host.hasSuffix("." + domain))
      && covers(path) && (!isSecure || url.scheme?.lowercased() == "https") && !hasExpired(now)
  }

  func hasExpired(_ now: Int64) -> Bool { expiry.map { $0 <= now } ?? false }

  /// True if a new cookie replaces the other (RFC 6265 §5.3, step 11).
  func replaces(_ other: Cookie) -> Bool {
    name == other.name && domain == other.domain && path == other.path
  }

  // MARK: - Private

  private static let byteLimit = 4096 + 1024

  /// RFC 6265 §5.1.4.
  private func covers(_ other: String) -> Bool {
    guard other.hasPrefix(path) else { return false }
    return path.hasSuffix("/") || other.utf8.count == path.utf8.count
      || other.dropFirst(path.count).hasPrefix("/")
  }

  private static func defaultPath(of url: URL) -> String {
    let path = url.path()
    guard path.hasPrefix("/"), let end = path.lastIndex(of: "/"), end > path.startIndex else { return "/" }
    return String(path[..<end])
  }

  /// True for a domain of one label, and for names such as `co.uk`, below which anybody can have a name. The list of public
  /// suffixes would be exact, and is too large.
  private static func isShared(_ domain: String) -> Bool {
    let labels = domain.split(separator: ".")
    guard labels.count == 2 else { return labels.count < 2 }
    return labels[1].count == 2
      && ["ac", "co", "com", "edu", "go", "gov", "ne", "net", "or", "org"].contains(labels[0])
  }

  /// Returns the seconds since 1970 of a date as servers have written it (RFC 6265 §5.1.1), such as
  /// `Wed, 09-Jun-2021 10:18:14 GMT`.
  private static func seconds(_ text: String) -> Int64? {
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    var (time, month): (Substring?, Substring?) = (nil, nil)
    var (day, year): (Int?, Int?) = (nil, nil)
    for part in text.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != ":" }) {
      let number = part.utf8.allSatisfy(\.isDigit) ? Int(part) : nil
      if time == nil, part.contains(":") {
        time = part
      } else if day == nil, let number, part.utf8.count <= 2 {
        day = number
      } else if year == nil, let number, (2...4).contains(part.utf8.count) {
        year = number < 70 ? number + 2000 : number < 100 ? number + 1900 : number
      } else if month == nil, months.contains(part.prefix(3).lowercased()) {
        month = part.prefix(3)
      }
    }
    guard let time, let day, let month, let year else { return nil }
    let clock = time.split(separator: ":").map { $0.count == 1 ? "0\($0)" : String($0) }.joined(
      separator: ":")
    let name = month.prefix(1).uppercased() + month.dropFirst().lowercased()
    return WallTime.secondsSince1970(httpDate: ", \(day < 10 ? "0" : "")\(day) \(name) \(year) \(clock) GMT")
  }
}

/// The cookies of a user, in memory: those of a file, and those that responses set.
package final class CookieStore: Sendable {
  /// At least as many as RFC 6265 §6.1 asks for.
  private static let countLimit = 3_000

  private let cookies: Locked<[Cookie]>

  package init(_ cookies: [Cookie] = []) { self.cookies = Locked(cookies) }

  /// Keeps the cookies that a response from `url` sets, and removes those that it ends.
  package func add(_ fields: [String], from url: URL, now: Date = Date()) {
    guard !fields.isEmpty else { return }
    let now = Int64(now.timeIntervalSince1970)
    let news = fields.compactMap { Cookie(setBy: $0, of: url, now: now) }
    cookies.withLock { cookies in
      for cookie in news {
        let index = cookies.firstIndex { cookie.replaces($0) }
        // A server without TLS can't replace a cookie of one with it.
        if let index, cookies[index].isSecure, url.scheme?.lowercased() != "https" { continue }
        switch (index, cookie.hasExpired(now)) {
        case (let index?, true): cookies.remove(at: index)
        case (let index?, false): cookies[index] = cookie
        case (nil, true): break
        case (nil, false): cookies.append(cookie)
        }
      }
      guard cookies.count > Self.countLimit else { return }
      cookies.removeAll { $0.hasExpired(now) }
      cookies.removeFirst(max(0, cookies.count - Self.countLimit))
    }
  }

  /// Returns the value of the `Cookie` field for a request (RFC 6265 §5.4); nil if no cookie applies to it.
  package func header(for url: URL, now: Date = Date()) -> String? {
    let now = Int64(now.timeIntervalSince1970)
    let found = cookies.withLock { $0.filter { $0.applies(to: url, now: now) } }
    guard !found.isEmpty else { return nil }
    // Longer paths come first, otherwise in the order in which they were set.
    let ordered = found.enumerated().sorted {
      ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset)
    }
    return ordered.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
  }
}

extension URL {
  /// True if the host is an IP address.
  fileprivate var isAddress: Bool {
    guard let host = host(percentEncoded: false) else { return false }
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    return host.contains(":") || labels.count == 4 && labels.allSatisfy { UInt8($0) != nil }
  }
}
