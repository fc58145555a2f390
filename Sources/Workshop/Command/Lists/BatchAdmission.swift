import Foundation
import ReelCore
import ReelPool
import ReelSources

/// Decides which entries of a list a run works on, and names the files of their sources.
struct BatchAdmission {
  enum Verdict {
    case source(Batch.Listed)
    /// An entry that is not a source.
    case failure(Batch.Listed, ReelError)
    /// The entry belongs to another shard.
    case elsewhere
    /// The entry repeats an earlier one of the list.
    case repeated
    /// The entry was completed by an earlier run.
    case finished(hasFailed: Bool)
  }

  private let configuration: Batch.Configuration
  private let finished: ResultsFile.Finished
  private let fansOut: Bool
  /// Reads the entries of a list; nil for arguments.
  private let reference: FeedReference?
  /// The entries so far.
  private(set) var count = 0
  /// The sources found in the list so far.
  private var seen: Set<SourceHash> = []
  /// The names assigned to sources; only for templates that could give the same name to two sources.
  private var names: Set<SourceHash> = []

  /// - Parameters:
  ///   - finished: The sources completed by earlier runs.
  ///   - fansOut: Whether files go into folders by the hash of their source.
  init(_ configuration: Batch.Configuration, finished: ResultsFile.Finished, fansOut: Bool) {
    self.configuration = configuration
    self.finished = finished
    self.fansOut = fansOut
    reference = configuration.run.list.input.map { path in
      let location: MediaSource = path == "-" ? .standardInput : .url(URL(fileURLWithPath: path))
      return FeedReference(feed: location, limit: FeedLimits().referenceByteCount)
    }
  }

  /// Returns the decision on the next entry of the list.
  mutating func admit(_ entry: SourceListParser.Entry) -> Verdict {
    count += 1
    switch entry.content {
    case .source(let text, let fields):
      do throws(ReelError) {
        return admit(try source(text), text, fields: fields, line: entry.line)
      } catch {
        // Not a URL, or one that is not supported.
        let listed = listed(text, SourceHash(text), line: entry.line, fields: fields)
        guard isInShard(listed) else { return .elsewhere }
        return skipped(listed.hash) ?? .failure(listed, located(error, line: entry.line))
      }
    case .failure(let error):
      let listed = listed("", SourceHash("line \(entry.line)"), line: entry.line)
      guard isInShard(listed) else { return .elsewhere }
      return .failure(listed, error.located(at: listName))
    }
  }

  /// The work on an admitted entry, with the names of its files.
  func job(_ listed: Batch.Listed) -> SourceRun.Job {
    let parsed = Result { () throws(ReelError) in try source(listed.text) }
    let names = BatchNames(
      template: configuration.template,
      values: values(of: (try? parsed.get()) ?? .standardInput, listed), isMarked: listed.isMarked,
      output: configuration.style.folder ?? ".", fansOut: fansOut)
    let options = configuration.options
    return SourceRun.Job(
      parsed: parsed, text: listed.text.withoutUserInformation, names: names, folder: names.folder,
      stem: names.stem, printsText: !options.json && !options.quiet, timeout: options.timeout,
      overwrites: configuration.run.overwrite)
  }

  // MARK: - Private

  private mutating func admit(
    _ source: MediaSource, _ text: String, fields: [SourceListParser.Field], line: Int
  ) -> Verdict {
    var listed = listed(text, SourceHash(text), line: line, host: Batch.host(of: source), fields: fields)
    let isElsewhere = !isInShard(listed)
    if !configuration.template.isUnique, !seen.contains(listed.hash) {
      // Names are assigned in the order of the list, including sources of other shards, so that each run
      // gives the same ones.
      listed.isMarked = !names.insert(name(of: source, listed)).inserted
      if isElsewhere { seen.insert(listed.hash) }
    }
    if isElsewhere { return .elsewhere }
    return skipped(listed.hash) ?? .source(listed)
  }

  private func listed(
    _ text: String, _ hash: SourceHash, line: Int, host: String = "", fields: [SourceListParser.Field] = []
  ) -> Batch.Listed {
    Batch.Listed(
      text: text, index: count, line: line, hash: hash, host: host, fields: fields, isMarked: false)
  }

  private func isInShard(_ listed: Batch.Listed) -> Bool {
    configuration.shard?.contains(listed.hash) ?? true
  }

  /// Returns nil for a source to work on.
  private mutating func skipped(_ hash: SourceHash) -> Verdict? {
    if !seen.insert(hash).inserted { return .repeated }
    if finished.written.contains(hash) { return .finished(hasFailed: false) }
    if finished.failed.contains(hash) { return .finished(hasFailed: true) }
    return nil
  }

  /// Returns the error of an entry with its place in the list.
  private func located(_ error: ReelError, line: Int) -> ReelError {
    var error = error
    // The error is in the list, not in the manifest of a stream.
    if error.kind == .badManifest { error.kind = .usage }
    guard line > 0 else { return error }
    // The reason names the entry, and the location names the list.
    if let entry = error.location { error.reason = "\(entry): \(error.reason)" }
    error.location = listName
    error.place = .line(line)
    return error
  }

  private var listName: String {
    configuration.inputName ?? "arguments"
  }

  /// Returns the source that an entry refers to: relative to the list, or to the working folder for an
  /// argument.
  private func source(_ text: String) throws(ReelError) -> MediaSource {
    guard let reference else { return try MediaSource(argument: text) }
    return try reference.source(text)
  }

  private func values(of source: MediaSource, _ listed: Batch.Listed) -> NameTemplate.Values {
    .init(
      index: listed.index, stem: source.stem, hash: listed.hash.text,
      host: listed.host.isEmpty ? "local" : listed.host, format: configuration.style.format)
  }

  /// Returns a hash that is equal for names that differ only in letter case or Unicode normalization, because
  /// some file systems treat such names as the same.
  private func name(of source: MediaSource, _ listed: Batch.Listed) -> SourceHash {
    let stem = configuration.template.stem(values(of: source, listed), time: 0, isMarked: false)
    return SourceHash(stem.decomposedStringWithCanonicalMapping.lowercased())
  }
}
