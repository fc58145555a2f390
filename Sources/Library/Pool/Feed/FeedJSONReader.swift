internal import HTTPTypes
internal import ReelCore

/// Reads feeds in JSON.
struct FeedJSONReader {
  let reference: FeedReference
  let itemLimit: Int

  /// Returns the feeds in the order of the text, the one without a name first.
  ///
  /// Throws `ReelError` with the line and the path of an unreadable value.
  func feeds(in bytes: ArraySlice<UInt8>) throws(ReelError) -> [Feed] {
    let root = try Self.root(in: bytes)
    var rest = itemLimit
    if case .array = root.value {
      return [try feed(root, name: FeedFile.defaultName, path: "", rest: &rest)]
    }
    guard case .object = root.value else {
      throw Self.failure("a feed must be an object or an array, not \(root.kind)", at: root, "")
    }
    guard root["items"] != nil || root["feeds"] != nil else {
      throw ReelError(
        .badManifest, "the object has neither \"items\" nor \"feeds\"", place: .line(root.line))
    }
    var feeds: [Feed] = []
    if let items = root["items"] {
      feeds.append(try feed(array: items, name: FeedFile.defaultName, path: "items", rest: &rest))
    }
    if let named = root["feeds"] {
      for (name, node, path) in try namedFeeds(named) {
        guard !feeds.contains(where: { $0.name == name }) else {
          throw Self.failure("the feed \"\(name)\" appears twice", at: node, path)
        }
        feeds.append(try feed(node, name: name, path: path, rest: &rest))
      }
    }
    return feeds
  }

  // MARK: - Private

  private static func root(in bytes: ArraySlice<UInt8>) throws(ReelError) -> JSONNode {
    do {
      return try JSONParser.node(in: bytes)
    } catch {
      var advised = error
      // The list entry `[a].mp4` fails at this position.
      if error.place == .line(1, column: 2), let first = bytes.first {
        advised.advice = "in a list write ./ before a path that begins with \(Unicode.Scalar(first))"
      }
      throw advised
    }
  }

  private func namedFeeds(
    _ node: JSONNode
  ) throws(ReelError) -> [(name: String, node: JSONNode, path: String)] {
    var feeds: [(name: String, node: JSONNode, path: String)] = []
    switch node.value {
    case .object(let members):
      for (name, node) in members { feeds.append((name, node, "feeds.\(name)")) }
    case .array(let elements):
      for (index, node) in elements.enumerated() {
        let path = "feeds[\(index)]"
        guard let name = try Self.text("name", of: node, path) else {
          throw Self.failure("the feed has no \"name\"", at: node, path)
        }
        feeds.append((name, node, path))
      }
    default: throw Self.failure("must be an object or an array, not \(node.kind)", at: node, "feeds")
    }
    if let nameless = feeds.first(where: \.name.isEmpty) {
      throw Self.failure("the feed has an empty name", at: nameless.node, nameless.path)
    }
    return feeds
  }

  /// Reads a feed: an array of items, or an object with one.
  private func feed(
    _ node: JSONNode, name: String, path: String, rest: inout Int
  ) throws(ReelError) -> Feed {
    guard case .object = node.value else {
      return try feed(array: node, name: name, path: path, rest: &rest)
    }
    guard let items = node["items"] else { throw Self.failure("the feed has no \"items\"", at: node, path) }
    return try feed(array: items, name: name, path: "\(path).items", rest: &rest)
  }

  private func feed(
    array node: JSONNode, name: String, path: String, rest: inout Int
  ) throws(ReelError) -> Feed {
    guard case .array(let elements) = node.value else {
      throw Self.failure("must be an array of items, not \(node.kind)", at: node, path)
    }
    var feed = Feed(name: name)
    for (index, element) in elements.enumerated() {
      guard rest > 0 else {
        throw Self.failure("more than the limit of \(itemLimit) items", at: element, path)
      }
      rest -= 1
      try append(element, path: "\(path)[\(index)]", to: &feed)
    }
    return feed
  }

  private func append(_ node: JSONNode, path: String, to feed: inout Feed) throws(ReelError) {
    if case .string(let text) = node.value {
      feed.append(try Self.placed(node, path) { () throws(ReelError) in try reference.source(text) })
      return
    }
    guard case .object = node.value else {
      throw Self.failure("an item must be a string or an object, not \(node.kind)", at: node, path)
    }
    guard let url = node["url"], let text = try Self.text("url", of: node, path) else {
      throw Self.failure("the item has no \"url\"", at: node, path)
    }
    let source = try Self.placed(url, "\(path).url") { () throws(ReelError) in try reference.source(text) }
    var item = FeedItem(id: feed.nextID(of: source), source: source)
    item.title = try Self.text("title", of: node, path)
    item.author = try Self.text("author", of: node, path)
    item.likes = try Self.count("likes", of: node, path)
    item.comments = try Self.count("comments", of: node, path)
    if let poster = node["poster"], let text = try Self.text("poster", of: node, path) {
      item.poster = try Self.placed(poster, "\(path).poster") { () throws(ReelError) in
        try reference.url(text)
      }
    }
    if let headers = node["headers"] { item.headers = try Self.headers(headers, "\(path).headers") }
    if let headers = node["secret_headers"] {
      let fields = try Self.headers(headers, "\(path).secret_headers")
      item.headers += fields.map { HTTPField.secret($0.name, $0.value) }
    }
    if let duration = node["duration"] { item.duration = try Self.duration(duration, "\(path).duration") }
    if let shares = node["retention"] { item.retention = try Self.retention(shares, "\(path).retention") }
    feed.append(item)
  }

  /// Reads an object of texts, or an array of texts `Name: value`.
  private static func headers(_ node: JSONNode, _ path: String) throws(ReelError) -> HTTPFields {
    var fields: HTTPFields = [:]
    switch node.value {
    case .object(let members):
      for (name, value) in members {
        guard case .string(let text) = value.value else {
          throw failure("must be a string, not \(value.kind)", at: value, "\(path).\(name)")
        }
        fields.append(try field(name, text, at: value, "\(path).\(name)"))
      }
    case .array(let elements):
      for (index, element) in elements.enumerated() {
        guard case .string(let text) = element.value, let colon = text.firstIndex(of: ":") else {
          throw failure("must be a string \"Name: value\"", at: element, "\(path)[\(index)]")
        }
        let value = String(text[text.index(after: colon)...])
        fields.append(try field(String(text[..<colon]), value, at: element, "\(path)[\(index)]"))
      }
    default: throw failure("must be an object or an array, not \(node.kind)", at: node, path)
    }
    return fields
  }

  /// Reads a field whose name is a token, and whose value has no control characters (RFC 9110 §5.1, §5.5).
  private static func field(
    _ name: String, _ value: String, at node: JSONNode, _ path: String
  ) throws(ReelError) -> HTTPField {
    let value = value.trimmed
    guard let token = HTTPField.Name(name), HTTPField.isValidValue(value) else {
      throw failure("\"\(name)\" is not a header field", at: node, path)
    }
    return HTTPField(name: token, value: value)
  }

  private static func text(_ key: String, of node: JSONNode, _ path: String) throws(ReelError) -> String? {
    guard let member = node[key] else { return nil }
    guard case .string(let text) = member.value else {
      throw failure("must be a string, not \(member.kind)", at: member, "\(path).\(key)")
    }
    return text
  }

  private static func count(_ key: String, of node: JSONNode, _ path: String) throws(ReelError) -> Int? {
    guard let member = node[key] else { return nil }
    guard case .number(let text) = member.value,
      let count = Int(text) ?? Double(text).flatMap(Int.init(exactly:)),
      count >= 0
    else {
      throw failure("must be a whole number of 0 or more", at: member, "\(path).\(key)")
    }
    return count
  }

  private static func number(_ node: JSONNode, _ path: String) throws(ReelError) -> Double {
    guard case .number(let text) = node.value, let number = Double(text) else {
      throw failure("must be a number, not \(node.kind)", at: node, path)
    }
    return number
  }

  /// Reads seconds, to the microsecond.
  private static func duration(_ node: JSONNode, _ path: String) throws(ReelError) -> Duration {
    let seconds = try number(node, path)
    guard seconds >= 1e-6, seconds <= durationLimit else {
      let limit = Int(durationLimit)
      throw failure("must be seconds above 0 and at most \(limit)", at: node, path)
    }
    return .microseconds(Int64((seconds * 1e6).rounded()))
  }

  private static func retention(_ node: JSONNode, _ path: String) throws(ReelError) -> RetentionCurve {
    guard case .array(let elements) = node.value else {
      throw failure("must be an array of numbers, not \(node.kind)", at: node, path)
    }
    var shares: [Double] = []
    for (index, element) in elements.prefix(RetentionCurve.entryLimit + 1).enumerated() {
      shares.append(try number(element, "\(path)[\(index)]"))
    }
    if let fault = RetentionCurve.fault(in: shares) {
      guard let index = fault.index else { throw failure(fault.reason, at: node, path) }
      throw failure(fault.reason, at: elements[index], "\(path)[\(index)]")
    }
    return RetentionCurve(checked: shares)
  }

  /// The longest duration of an item, in seconds: a day.
  private static let durationLimit = 86_400.0

  private static func failure(_ reason: String, at node: JSONNode, _ path: String) -> ReelError {
    ReelError(.badManifest, path.isEmpty ? reason : "\(path): \(reason)", place: .line(node.line))
  }

  /// Returns the result of `body`, or throws its error with the place of `node`.
  private static func placed<Value>(
    _ node: JSONNode, _ path: String, _ body: () throws(ReelError) -> Value
  ) throws(ReelError) -> Value {
    do {
      return try body()
    } catch {
      var placed = error
      placed.place = .line(node.line)
      placed.reason = "\(path): \(error.location.map { "\($0): " } ?? "")\(error.reason)"
      placed.location = nil
      throw placed
    }
  }
}
