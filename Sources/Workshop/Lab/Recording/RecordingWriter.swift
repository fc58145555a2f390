internal import Foundation
package import ReelCore
internal import SystemPackage

/// Writes a recording as JSON Lines. Each line is written at once, so a recording that is cut off is whole up to its last
/// line. Used from any thread.
package final class RecordingWriter: Sendable {
  /// Why a report is refused.
  package struct Refusal: Error, Sendable, Hashable {
    /// The status of HTTP.
    package var status: Int
    package var reason: String
  }

  private struct State {
    /// Nil when the recording has ended.
    var file: FileDescriptor?
    var byteCount: Int64 = 0
    var playbacks: Set<String> = []
    var failure: ReelError?
  }

  private static let playbackLimit = 10_000

  private let path: String
  /// The names of the items, by name and by path.
  private let names: [String: String]
  /// Never written, so that nobody can find an address by trying all.
  private let salt = UInt64.random(in: .min ... .max)
  private let state: Locked<State>

  /// Creates the file, readable by its owner only, with its first line.
  ///
  /// - Throws: `ReelError` of kind `cannotCreateOutput`, also if the file exists.
  package init(path: String, run: RecordedRun) throws(ReelError) {
    self.path = path
    names = run.items.reduce(into: [:]) { names, item in
      names[item.name] = item.name
      names[item.path] = item.name
    }
    do {
      let file = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .exclusiveCreate, .append, .closeOnExec],
        permissions: .ownerReadWrite)
      state = Locked(State(file: file), rank: .transfer)
    } catch {
      let code = (error as? Errno) ?? .ioError
      throw ReelError(
        .cannotCreateOutput, "the recording can't be created: \(ReelError.systemText(code.rawValue))",
        at: path,
        advice: code == .fileExists ? "name another file; a recording is never replaced" : nil)
    }
    write(run)
    if let failure { throw failure }
  }

  /// The error that has ended the recording; nil for none.
  package var failure: ReelError? { state.withLock { $0.failure } }

  /// Returns the hash of an address, which is the same for all of this recording.
  package func client(_ address: String?) -> String? {
    guard let address else { return nil }
    var hasher = Hasher()
    hasher.combine(salt)
    hasher.combine(address)
    return String(UInt64(bitPattern: Int64(hasher.finalize())), radix: 36)
  }

  package func add(_ request: RecordedRequest) { write(request) }

  /// Adds the report of a player.
  ///
  /// - Parameters:
  ///   - json: As the player sent it.
  ///   - address: The address that it came from.
  ///   - time: The time at which it arrived.
  package func add(reportOf json: [UInt8], from address: String?, at time: Duration) throws(Refusal) {
    try checkWritten()
    var report: PlayerReport
    do throws(ReelError) { report = try PlayerReport(json: json) } catch {
      throw Refusal(status: 400, reason: error.reason)
    }
    if let item = report.item {
      guard let name = names[item] else {
        throw Refusal(status: 422, reason: "the feed has no item \(item.prefix(200))")
      }
      report.item = name
    }
    let (kind, playback) = (report.kind, report.playback)
    let refusal = state.withLock { state -> Refusal? in
      guard kind == .start else {
        guard !state.playbacks.contains(playback) else { return nil }
        return Refusal(status: 404, reason: "unknown playback \(playback): report its start first")
      }
      guard state.playbacks.count < Self.playbackLimit else {
        return Refusal(status: 429, reason: "more than \(Self.playbackLimit) playbacks")
      }
      guard state.playbacks.insert(playback).inserted else {
        return Refusal(status: 409, reason: "playback \(playback) has started before: choose another name")
      }
      return nil
    }
    if let refusal { throw refusal }
    report.receivedMs = time.milliseconds
    report.clockOffsetMs = ((time.milliseconds - report.sentMs) * 1e3).rounded() / 1e3
    report.client = client(address)
    write(report)
    try checkWritten()
  }

  /// Refuses a report if the recording has ended because it could not be written.
  private func checkWritten() throws(Refusal) {
    if let failure { throw Refusal(status: 507, reason: failure.reason) }
  }

  /// Ends the recording. Further calls do nothing.
  ///
  /// - Throws: The error that ended it before, of kind `cannotWriteOutput`.
  package func finish() throws(ReelError) {
    let failure = state.withLock { state in
      try? state.file.take()?.close()
      return state.failure
    }
    if let failure { throw failure }
  }

  /// Ends the recording and removes its file, because nothing was served.
  package func discard() {
    try? finish()
    try? FileManager.default.removeItem(atPath: path)
  }

  // MARK: - Private

  private func write(_ line: some Encodable) {
    guard let text = try? JSONLine.string(line, of: "line") else { return }
    let bytes = Array((text + "\n").utf8)
    state.withLock { state in
      guard let file = state.file else { return }
      do {
        try file.writeAll(bytes)
        state.byteCount += Int64(bytes.count)
      } catch {
        let code = (error as? Errno) ?? .ioError
        state.failure = ReelError(
          .cannotWriteOutput, "the recording can't be written: \(ReelError.systemText(code.rawValue))",
          at: path)
        // A part of a line is worth nothing.
        try? file.resize(to: state.byteCount)
        try? file.close()
        state.file = nil
      }
    }
  }
}
