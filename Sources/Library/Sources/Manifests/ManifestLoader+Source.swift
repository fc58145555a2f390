package import Foundation
internal import ReelCore
internal import ReelManifest

extension ManifestLoader {
  /// Returns the presentation of the manifest at `url`.
  ///
  /// Throws `badManifest` if there is something else, and the errors of `presentation(from:format:url:name:)`.
  package func presentation(at url: URL) async throws -> ResolvedPresentation {
    let start = recorder.clock.now
    let response = try await fetcher.fetch(FetchRequest(url: url, purpose: .source))
    do {
      var bytes: [UInt8] = []
      var text: TextFormat?
      while let chunk = try await response.body.next() {
        bytes += chunk
        guard bytes.count >= TextFormat.byteCount, text == nil else { continue }
        // No more of a media file is read.
        text = TextFormat(bytes)
        guard case .manifest = text else { break }
        guard bytes.count <= configuration.manifestLimits.byteCount else { break }
      }
      recorder.add(
        .manifest, recorder.clock.now - start, requests: response.requestCount, bytes: Int64(bytes.count))
      switch text ?? TextFormat(bytes) {
      case .manifest(let format):
        let resolved = try await presentation(
          from: bytes, format: format, url: response.url, name: url.reelName)
        return try setting(resolved, to: response.date)
      case .other(let what):
        throw ReelError(.badManifest, "\(what), and neither HLS nor DASH", advice: Self.advice)
      case nil:
        throw ReelError(.badManifest, "neither HLS nor DASH", advice: Self.advice)
      }
    } catch let error as ReelError {
      throw error.located(at: response.url.reelName)
    }
  }

  // MARK: - Private

  /// Returns a live presentation by the clock of the server that it came from, if it names no other and this machine's is
  /// far from it.
  private func setting(_ resolved: ResolvedPresentation, to date: WallTime?) throws -> ResolvedPresentation {
    guard let date, let live = resolved.presentation.live, live.clockSources.isEmpty, live.drift == nil,
      let atTime = live.presentation
    else { return resolved }
    let offset = date - resolved.clock.now
    // A Date field is in whole seconds, and a cache may have kept it for a while.
    guard abs(offset.seconds) > Self.clockTolerance else { return resolved }
    var resolved = resolved
    resolved.clock = ServerClock(base: resolved.clock, offset: offset)
    resolved.presentation = try atTime(resolved.clock.now)
    return resolved
  }

  private static let clockTolerance = 10.0
  private static let advice = "pass a manifest, or serve media files as they are with reel serve FOLDER"
}
