import Foundation
public import ReelCore

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What a fetcher is made with.
public struct Options: Sendable {
  /// The PEM file of the certificate authority.
  public var authorities: String?
  /// Seconds, for a connection, an answer and more of a body.
  public var timeout = 10
  /// The connections to open beside that of a manifest.
  public var ahead = 1
  /// The size of libcurl's buffer; nil for 8 KiB.
  public var buffer: Int?
}

/// The processor time of this process, in milliseconds.
private func cpu() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1000 + Double(time.tv_nsec) / 1e6
}

private func ms(_ duration: Duration) -> Double {
  Double(duration.components.seconds) * 1000 + Double(duration.components.attoseconds) / 1e15
}

private func say(_ fields: [(String, String)]) {
  let line = "{" + fields.map { "\"\($0.0)\": \($0.1)" }.joined(separator: ", ") + "}\n"
  FileHandle.standardOutput.write(Data(line.utf8))
}

private func quoted(_ text: String) -> String {
  "\"" + text.replacingOccurrences(of: "\\", with: "/").replacingOccurrences(of: "\"", with: "'")
    .replacingOccurrences(of: "\n", with: " ") + "\""
}

/// Reads a body to its end: its size, and the milliseconds to its first byte.
@Sendable private func drain(_ fetcher: any Fetching, _ request: FetchRequest) async throws -> (Int, Double) {
  let start = ContinuousClock.now
  let response = try await fetcher.fetch(request)
  var (count, first) = (0, 0.0)
  for try await chunk in response.body {
    if count == 0 { first = ms(.now - start) }
    count += chunk.count
  }
  return (count, first)
}

/// Runs the command of this process with a fetcher. Prints results as lines of JSON.
///
/// - Parameter makeFetcher: Makes the fetcher to measure, which must not retry.
public func measure(_ makeFetcher: (Options) -> any Fetching) async throws {
  var options = Options()
  var words = Array(CommandLine.arguments.dropFirst())
  var rest: [String] = []
  while !words.isEmpty {
    let word = words.removeFirst()
    switch word {
    case "--cacert": options.authorities = words.removeFirst()
    case "--timeout": options.timeout = Int(words.removeFirst()) ?? 10
    case "--ahead": options.ahead = Int(words.removeFirst()) ?? 1
    case "--buffer": options.buffer = Int(words.removeFirst())
    default: rest.append(word)
    }
  }
  let command = rest.removeFirst()
  if command == "version" { print("1"); exit(0) }
  let urls = rest.compactMap { $0.hasPrefix("http") ? URL(string: $0) : nil }
  let number = rest.compactMap { Int($0) }.first ?? 1
  let start = ContinuousClock.now
  let fetcher = makeFetcher(options)

  switch command {
  case "get":
    let (count, first) = try await drain(fetcher, FetchRequest(url: urls[0], purpose: .segment))
    say([("bytes", "\(count)"), ("first", "\(first)"), ("total", "\(ms(.now - start))"), ("cpu", "\(cpu())")])

  case "fault":
    let began = ContinuousClock.now
    var outcome = ""
    var count = 0
    do {
      let range = rest.contains("range") ? ByteRange(offset: 10, length: 20) : nil
      let response = try await fetcher.fetch(FetchRequest(url: urls[0], range: range, purpose: range == nil ? .manifest : .segment))
      for try await chunk in response.body { count += chunk.count }
      outcome = "ok"
    } catch { outcome = "\(error)" }
    say([("outcome", quoted(outcome)), ("bytes", "\(count)"), ("ms", "\(ms(.now - began))"), ("cpu", "\(cpu())")])

  case "chain":
    // A manifest, and then two resources at the same time.
    _ = try await drain(fetcher, FetchRequest(url: urls[0], purpose: .manifest))
    let manifest = ms(.now - start)
    async let one = drain(fetcher, FetchRequest(url: urls[1], purpose: .initialization))
    async let two = drain(fetcher, FetchRequest(url: urls[2], purpose: .segment))
    _ = try await (one, two)
    say([("manifest", "\(manifest)"), ("total", "\(ms(.now - start))")])

  case "wait":
    _ = try await drain(fetcher, FetchRequest(url: urls[1], purpose: .segment))
    say([("ready", "1")])
    _ = readLine()
    let before = cpu()
    let tasks = (0..<number).map { _ in
      Task.detached { _ = try? await drain(fetcher, FetchRequest(url: urls[0], purpose: .segment)) }
    }
    _ = readLine()
    say([("cpu", "\(cpu() - before)")])
    _ = readLine()
    let began = ContinuousClock.now
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
    say([("cancelled", "\(ms(.now - began))")])
    _ = readLine()

  case "cancel":
    _ = try await drain(fetcher, FetchRequest(url: urls[1], purpose: .segment))
    var times: [Double] = []
    for _ in 0..<number {
      let task = Task.detached { _ = try? await drain(fetcher, FetchRequest(url: urls[0], purpose: .segment)) }
      try await Task.sleep(for: .milliseconds(20))
      let began = ContinuousClock.now
      task.cancel()
      await task.value
      times.append(ms(.now - began))
    }
    times.sort()
    say([("median", "\(times[times.count / 2])"), ("most", "\(times.last ?? 0)")])

  case "stall":
    let response = try await fetcher.fetch(FetchRequest(url: urls[0], purpose: .segment))
    let iterator = response.body.makeAsyncIterator()
    var copy = iterator
    let first = try await copy.next()
    say([("taken", "\(first?.count ?? 0)")])
    _ = readLine()
    var count = first?.count ?? 0
    while let chunk = try await copy.next() { count += chunk.count }
    say([("bytes", "\(count)")])

  default: exit(64)
  }
}
