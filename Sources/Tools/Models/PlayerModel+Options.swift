package import ReelCore

extension PlayerModel {
  /// The preload policies of a modelled player as users write them.
  package static let preloadForms: [(form: String, meaning: String)] = [
    ("none", "only the current item"),
    ("adjacent", "the next and the previous item"),
    ("ahead:N", "the next N items in the direction of travel"),
  ]

  /// Returns the model with another number of players, or with other preloads.
  ///
  /// - Parameters:
  ///   - players: The number of players; nil for one for each item that is preloaded, or that of the model.
  ///   - preload: One of `preloadForms`, perhaps with the media that is loaded of each item: `ahead:2,1s`, `adjacent:1s`;
  ///     nil for the items of the model.
  /// - Throws: `ReelError` of kind `usage` for a policy that a model does not have.
  package func using(players: Int?, preload text: String?) throws(ReelError) -> PlayerModel {
    var model = self
    if let text {
      let items = try neighbours(parsing: text)
      model.preload.items = items
      model.preload.players = items.count + 1
      if items.isEmpty { model.preload.disk = nil }
    }
    if let players {
      // More players than the model states preload further ahead.
      let usual = preload.items.first { $0.offset > 0 }?.forwardS ?? Self.usualForward
      while text == nil, model.preload.items.count < players - 1 {
        let last = model.preload.items.map(\.offset).max() ?? 0
        let after = model.preload.items.last?.offset ?? 0
        model.preload.items.append(
          Preload.Neighbour(offset: max(last, 0) + 1, forwardS: usual, after: after))
      }
      model.preload.players = players
    }
    return model
  }

  /// Why it can't play a format, as a clause; nil if it can.
  package func refusal(of format: Format) -> String? {
    guard !start.formats.contains(format) else { return nil }
    let words =
      switch format {
      case .hls: "HLS"
      case .dash: "DASH"
      case .file: "media files"
      }
    return "\(name) does not play \(words)"
  }

  /// The player and what it preloads, for reports: `hls.js preloading two items ahead (1 s each)`.
  package var policyName: String { preloadedItems.isEmpty ? title : "\(title) \(preloadWords)" }

  /// What it preloads, in words: `preloading one item ahead (3 s)`, `preloading nothing`.
  package var preloadWords: String {
    let items = preloadedItems
    guard let first = items.first else { return "preloading nothing" }
    let offsets = items.map(\.offset).sorted()
    let side = offsets.count { $0 > 0 }
    let words =
      if offsets == Array(1...max(side, 1)) {
        "\(Self.count(of: side)) ahead"
      } else if offsets == [-1, 1] {
        "the next and the previous item"
      } else if side > 0, offsets == Array(-side...side).filter({ $0 != 0 }) {
        "\(Self.count(of: side)) on each side"
      } else {
        "the items \(items.map { $0.offset > 0 ? "+\($0.offset)" : "−\(-$0.offset)" }.joined(separator: " "))"
      }
    let isEqual = items.allSatisfy { $0.forwardS == first.forwardS }
    guard isEqual else { return "preloading \(words)" }
    let each = items.count > 1 ? " each" : ""
    let isWhole = first.forwardS >= Self.wholeForward
    return "preloading \(words) (\(isWhole ? "all" : "\(first.forwardS.formatted(places: 1)) s")\(each))"
  }

  package var preloadedItems: ArraySlice<Preload.Neighbour> { preload.items.prefix(preload.players - 1) }

  private static func count(of items: Int) -> String {
    let words = ["no", "one", "two", "three"]
    return words.indices.contains(items)
      ? "\(words[items]) item\(items == 1 ? "" : "s")" : items.counted("item")
  }

  /// The media that is loaded of a neighbour if neither the model nor the user says, in seconds.
  private static let usualForward = 3.0
  /// As much media as no item has, in seconds.
  private static let wholeForward = 3600.0
  private static let largestCount = 100

  private func neighbours(parsing text: String) throws(ReelError) -> [Preload.Neighbour] {
    let words = text.lowercased().split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    var arguments = words.count > 1 ? words[1].split(separator: ",", omittingEmptySubsequences: false) : []
    let isAhead = words.first == "ahead"
    let count = isAhead && !arguments.isEmpty ? Int(arguments.removeFirst()) : nil
    let forward = arguments.first.flatMap { TimeText.seconds(String($0), needsUnit: true) }
    guard arguments.count <= 1, arguments.isEmpty || forward.map({ $0 >= 0 && $0 <= 3600 }) == true else {
      throw refusal(of: text)
    }
    let seconds = forward ?? preload.items.first?.forwardS ?? Self.usualForward
    let waits = preload.items.first?.after != nil || preload.items.isEmpty
    let offsets: [Int]
    switch words.first {
    case "none" where words.count == 1: offsets = []
    case "adjacent": offsets = [1, -1]
    case "ahead":
      guard let count, (1...Self.largestCount).contains(count) else { throw refusal(of: text) }
      offsets = Array(1...count)
    default: throw refusal(of: text)
    }
    return offsets.enumerated().map { place, offset in
      Preload.Neighbour(
        offset: offset, forwardS: seconds, after: place > 0 ? offsets[place - 1] : waits ? 0 : nil)
    }
  }

  private func refusal(of text: String) -> ReelError {
    let forms = Self.preloadForms.map(\.form).joined(separator: ", ")
    return ReelError(
      .usage, "\(name) can't preload by \"\(text)\"",
      advice: "a modelled player takes \(forms), and a time for each item, such as ahead:2,1s")
  }
}
