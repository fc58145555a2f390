import Foundation
import ReelCore
import ReelTransport
import ReelTestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("File fetching", .hangLimit)
struct FileFetchTests {
  @Test("A file is streamed in pieces")
  func whole() async throws {
    try await withFolder { folder in
      let url = folder.appending(path: "ä b%20.mp4")
      let bytes = pattern(700_000)
      try Data(bytes).write(to: url)
      let reports = Reports()
      let response = try await TransportFetcher().fetch(reports.request(url))
      #expect(response.bodyOffset == 0)
      #expect(response.bodyByteCount == 700_000)
      #expect(response.resourceByteCount == 700_000)
      #expect(response.supportsRanges)
      var read: [UInt8] = []
      for try await chunk in response.body {
        #expect(chunk.count <= 256 << 10)
        read += chunk
      }
      #expect(read == bytes)
      let metrics = try #require(reports.all.first)
      #expect(reports.all.count == 1)
      #expect(metrics.byteCount == 700_000)
      #expect(metrics.status == nil)
    }
  }

  @Test(
    "A part of a file",
    arguments: [
      (ByteRange(offset: 0, length: 10), 0..<10),
      (ByteRange(offset: 300_000, length: nil), 300_000..<400_000),
      (ByteRange(offset: 399_999, length: 100), 399_999..<400_000),
      (ByteRange(offset: 100, length: 300_000), 100..<300_100),
      (ByteRange(offset: 100, length: .max), 100..<400_000),
    ])
  func part(range: ByteRange, expected: Range<Int>) async throws {
    try await withFolder { folder in
      let url = folder.appending(path: "a.mp4")
      let bytes = pattern(400_000)
      try Data(bytes).write(to: url)
      let response = try await TransportFetcher().fetch(
        FetchRequest(url: url, range: range, purpose: .segment))
      #expect(response.bodyOffset == Int64(expected.lowerBound))
      #expect(response.bodyByteCount == Int64(expected.count))
      let part = Array(bytes[expected])
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == part)
    }
  }

  @Test("What can't be read is told")
  func failures() async throws {
    try await withFolder { folder in
      let missing = folder.appending(path: "missing.mp4")
      let error = await reelError { _ = try await TransportFetcher().bytes(missing) }
      #expect(error == ReelError(.noSuchFile, "no such file", at: missing.path))

      let directory = await reelError { _ = try await TransportFetcher().bytes(folder) }
      #expect(directory?.kind == .badMedia)
      #expect(directory?.reason == "is a directory")

      let beyond = folder.appending(path: "a.mp4")
      try Data(pattern(10)).write(to: beyond)
      let range = ByteRange(offset: 10, length: 1)
      let end = await reelError { _ = try await TransportFetcher().bytes(beyond, range: range) }
      #expect(end?.kind == .badMedia)

      let through = beyond.appending(path: "b.mp4")
      let notDirectory = await reelError { _ = try await TransportFetcher().bytes(through) }
      #expect(notDirectory?.kind == .noSuchFile)
      #expect(notDirectory?.reason == "not a directory")
    }
  }

  @Test("A file without the right to read it", .enabled(if: geteuid() != 0, "root may read everything"))
  func unreadable() async throws {
    try await withFolder { folder in
      let url = folder.appending(path: "a.mp4")
      try Data(pattern(10)).write(to: url)
      try FileManager.default.setAttributes(
        [.posixPermissions: 0], ofItemAtPath: url.path(percentEncoded: false))
      let error = await reelError { _ = try await TransportFetcher().bytes(url) }
      #expect(error?.kind == .noSuchFile)
      #expect(error?.reason == "permission denied")
    }
  }

  @Test("An empty file has an empty body")
  func empty() async throws {
    try await withFolder { folder in
      let url = folder.appending(path: "a.mp4")
      try Data().write(to: url)
      let response = try await TransportFetcher().fetch(FetchRequest(url: url, purpose: .source))
      #expect(response.bodyByteCount == 0)
      let body = try await response.body.collect(upTo: 1)
      #expect(body.isEmpty)
    }
  }

  @Test("A pipe is a stream without a size")
  func pipe() async throws {
    try await withFolder { folder in
      let url = folder.appending(path: "pipe")
      let path = url.path(percentEncoded: false)
      #expect(mkfifo(path, 0o600) == 0)
      // Open for both, so that neither side waits for the other.
      let writer = open(path, O_RDWR)
      let response = try await TransportFetcher().fetch(FetchRequest(url: url, purpose: .source))
      #expect(response.bodyByteCount == nil)
      #expect(!response.supportsRanges)
      let bytes = pattern(10_000)
      #expect(bytes.withUnsafeBytes { write(writer, $0.baseAddress, $0.count) } == 10_000)
      close(writer)
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == bytes)
    }
  }

  @Test("A pipe that gives nothing can be cancelled")
  func cancelledPipe() async throws {
    try await withFolder { folder in
      let url = folder.appending(path: "pipe")
      let path = url.path(percentEncoded: false)
      #expect(mkfifo(path, 0o600) == 0)
      let writer = open(path, O_RDWR)
      defer { close(writer) }
      let reports = Reports()
      let response = try await TransportFetcher().fetch(reports.request(url))
      let task = Task { try await response.body.collect(upTo: 1) }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(reports.all.count == 1)
    }
  }

  @Test("A body that is let go is reported")
  func dropped() async throws {
    try await withFolder { folder in
      let url = folder.appending(path: "a.mp4")
      try Data(pattern(400_000)).write(to: url)
      let reports = Reports()
      for try await _ in try await TransportFetcher().fetch(reports.request(url)).body { break }
      // The thread that read the chunk may let go of the body a moment later.
      try await until { !reports.all.isEmpty }
      #expect(reports.all.count == 1)
      #expect(reports.all.first.map { $0.byteCount < 400_000 } == true)
    }
  }

  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "reel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder)
  }
}
