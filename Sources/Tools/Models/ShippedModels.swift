package import ReelCore
internal import ReelPool

extension PlayerModel {
  /// The models that Reel has, with what each stands for.
  package static let shipped: [(name: String, meaning: String)] = [
    ("hls.js", "hls.js 0.14 in Chromium"),
    ("video.js", "Video.js 7.5 with http-streaming in Chromium"),
    ("chromium", "the <video> of Chromium 156 with its own HLS, and files"),
    ("mpv", "mpv 0.35"),
    ("playbin3", "GStreamer 1.22"),
    ("media3", "Media3 1.11 with DefaultPreloadManager; from documentation, not measured"),
    ("avplayer", "a pool of three AVPlayers; from documentation, not measured"),
  ]

  package static var shippedNames: [String] { shipped.map(\.name) }

  /// Returns the model with a name, or the one in a file.
  ///
  /// - Throws: `ReelError` of kind `usage` for an unknown name, and the errors of `init(json:path:)`.
  package init(argument: String) throws(ReelError) {
    if let bytes = Self.json(of: argument.lowercased()) {
      try self.init(json: bytes, path: argument)
    } else if argument.contains("/") || argument.lowercased().hasSuffix(".json") {
      try self.init(json: try LocalText.bytes(path: argument, limit: Self.byteLimit), path: argument)
    } else {
      let names = Self.shippedNames.joined(separator: ", ")
      throw ReelError(
        .usage, "\"\(argument)\" is not a player", advice: "write reel, \(names), or the path of a model")
    }
  }

  /// The file of a model that Reel has; nil for another name.
  package static func json(of name: String) -> [UInt8]? {
    switch name {
    case "hls.js": PackageResources.hls_js_json
    case "video.js": PackageResources.video_js_json
    case "chromium": PackageResources.chromium_json
    case "mpv": PackageResources.mpv_json
    case "playbin3": PackageResources.playbin3_json
    case "media3": PackageResources.media3_json
    case "avplayer": PackageResources.avplayer_json
    default: nil
    }
  }
}
