import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Pipes to one reader", .hangLimit)
struct OutputPipesTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    signal(SIGPIPE, SIG_IGN)
  }

  /// Runs `body` outside tasks, because opening, reading and writing pipes blocks.
  private func blocking<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) -> Task<Result, any Error> {
    Task { try await BlockingThread.run(named: "pipe-test", body) }
  }

  /// Writes two pipes alternately in pieces, as a player does, while a reader opens and reads them to the end one
  /// after the other. Returns what the reader got.
  private func copy(
    _ names: [String], reading order: [String], pieces: Int, byteCount: Int
  ) async throws -> [String: Int] {
    for name in names { #expect(mkfifo(folder.path(name), 0o600) == 0) }
    let pipes = OutputPipes()
    let outputs = names.map { pipes.add(path: folder.path($0)) }
    let writer = blocking {
      for index in 0..<pieces {
        for (number, output) in outputs.enumerated() {
          try output.write([UInt8](repeating: UInt8(truncatingIfNeeded: index + number), count: byteCount))
        }
      }
      for output in outputs { output.end() }
    }
    let reader = blocking { [folder] in
      var counts: [String: Int] = [:]
      for name in order {
        let handle = try FileHandle(forReadingFrom: URL(filePath: folder.path(name)))
        while let data = try handle.read(upToCount: 1 << 20), !data.isEmpty {
          counts[name, default: 0] += data.count
        }
      }
      return counts
    }
    let counts = try await reader.value
    try await writer.value
    #expect(await pipes.drain() == nil)
    return counts
  }

  @Test("A reader may finish one pipe before it opens the other", arguments: [["a", "b"], ["b", "a"]])
  func anyOrder(order: [String]) async throws {
    // More than a queue holds in memory.
    let counts = try await copy(["a", "b"], reading: order, pieces: 80, byteCount: 1 << 20)
    #expect(counts == ["a": 80 << 20, "b": 80 << 20])
  }

  @Test("A writer waits for a reader that is not waiting for the other pipe")
  func backPressure() async throws {
    for name in ["a", "b"] { #expect(mkfifo(folder.path(name), 0o600) == 0) }
    let pipes = OutputPipes()
    let (a, b) = (pipes.add(path: folder.path("a")), pipes.add(path: folder.path("b")))
    let written = Locked(0)
    let writer = blocking {
      // The other pipe always has bytes to read.
      try b.write([UInt8](repeating: 1, count: 1 << 20))
      for _ in 0..<64 {
        try a.write([UInt8](repeating: 0, count: 1 << 20))
        written.withLock { $0 += 1 }
      }
      a.end()
      b.end()
    }
    let readers = try ["a", "b"].map { name in
      try FileHandle(forUpdating: URL(filePath: folder.path(name)))
    }
    try await until { written.withLock({ $0 }) >= 30 }
    // Longer than the writer waits before it checks the other pipe.
    try await Task.sleep(for: OutputPipes.patience * 4)
    #expect(written.withLock { $0 } < 40)
    pipes.stopWaiting()
    try await writer.value
    for reader in readers { try reader.close() }
    _ = await pipes.drain(within: .seconds(60))
  }

  @Test("If the reader is gone, the next write fails")
  func gone() async throws {
    #expect(mkfifo(folder.path("a"), 0o600) == 0)
    let pipes = OutputPipes()
    let pipe = pipes.add(path: folder.path("a"))
    let reader = blocking { [folder] in
      let handle = try FileHandle(forReadingFrom: URL(filePath: folder.path("a")))
      _ = try handle.read(upToCount: 100)
      try handle.close()
    }
    let error = try await blocking {
      while true {
        do throws(ReelError) {
          try pipe.write([UInt8](repeating: 0, count: 1 << 16))
        } catch {
          return error
        }
      }
    }.value
    try await reader.value
    #expect(error.kind == .cannotWriteOutput)
    pipe.end()
    #expect(await pipes.drain()?.kind == .cannotWriteOutput)
  }

  @Test("Bytes beyond the limit come out in order")
  func spill() throws {
    var queue = SpilledQueue(memoryLimit: 1000)
    var (given, taken) = ([UInt8](), [UInt8]())
    for round in 0..<50 {
      for index in 0..<(round % 7) {
        let piece = (0..<300).map { UInt8(truncatingIfNeeded: $0 &+ round &* 31 &+ index) }
        given += piece
        try queue.append(piece)
      }
      #expect(queue.byteCount == Int64(given.count - taken.count))
      for _ in 0..<2 { taken += try queue.takeFirst() ?? [] }
    }
    while let piece = try queue.takeFirst() { taken += piece }
    #expect(taken == given)
    #expect(queue.byteCount == 0)
  }
}
