import Foundation
import NIOCore
import NIOPosix
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTransport
import ReelTestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Time limits", .hangLimit)
struct TimeoutTests {
  let bytes = pattern(100_000)

  @Test("A server that takes the request and sends nothing")
  func silence() async throws {
    try await Origin.use(.init(routes: ["/a": .init(bytes)], faults: [FaultRule("*", .silence)])) { origin in
      let fetcher = quickFetcher(firstByteTimeout: .milliseconds(150))
      let reports = Reports()
      let error = await reelError { _ = try await fetcher.fetch(reports.request(origin.url("a"))) }
      #expect(
        error == ReelError(.timedOut, "no response within 0.15 s", at: origin.url("a").absoluteString))
      #expect(reports.all.map(\.requestCount) == [1])
      await origin.wait { $0.openConnectionCount == 0 }
    }
  }

  @Test("A server that stalls for ever in mid-body")
  func stall() async throws {
    let faults = [FaultRule("*", .stall(after: 10_000), count: 1), FaultRule("*", .stall(after: 0))]
    try await Origin.use(.init(routes: ["/a": .init(bytes)], faults: faults)) { origin in
      let fetcher = quickFetcher(idleTimeout: .seconds(10), attempts: 2)
      let response = try await fetcher.fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
      let error = await reelError { _ = try await response.body.collect(upTo: 1 << 20) }
      #expect(error?.kind == .timedOut)
      #expect(error?.reason == "no more data within 10 s (3 requests)")
      #expect(origin.requestLog.map(\.range) == [nil, "bytes=10000-99999", "bytes=10000-99999"])
    }
  }

  @Test("A slow body that keeps coming reaches no limit")
  func slowBody() async throws {
    // 800 kB take 16 s, in packets 29 ms apart.
    let link = try LinkSpec(parsing: "400k/1ms")
    try await Origin.use(.init(routes: ["/a": .init(pattern(800_000))], link: link)) { origin in
      let body = try await quickFetcher(idleTimeout: .seconds(12), attempts: 0).bytes(origin.url("a"))
      #expect(body.count == 800_000)
    }
  }

  @Test("A body that nobody reads reaches no limit")
  func parkedBody() async throws {
    try await Origin.use(.init(routes: ["/a": .init(pattern(8_000_000)), "/b": .init(bytes)])) { origin in
      let fetcher = quickFetcher(idleTimeout: .seconds(10), attempts: 0)
      let response = try await fetcher.fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
      var iterator = response.body.makeAsyncIterator()
      var count = try #require(try await iterator.next()).count
      // Another that stalls takes longer than the limit of the first.
      origin.setFaults([FaultRule("b", .stall(after: 100))])
      let other = quickFetcher(idleTimeout: .seconds(12), attempts: 0)
      #expect(await reelError { _ = try await other.bytes(origin.url("b")) }?.kind == .timedOut)
      while let chunk = try await iterator.next() { count += chunk.count }
      #expect(count == 8_000_000)
    }
  }

  @Test("A host that takes no connection")
  func connect() async throws {
    let listener = try FullListener()
    let fetcher = quickFetcher(connectTimeout: .milliseconds(200))
    let url = try #require(URL(string: "http://127.0.0.1:\(listener.port)/a"))
    let error = await reelError { _ = try await fetcher.bytes(url) }
    #expect(error == ReelError(.timedOut, "no connection within 0.2 s", at: url.absoluteString))
  }
}

/// A socket that listens and whose queue is full, so that further connections are not answered.
private final class FullListener {
  let port: Int
  private let listener: Int32
  private var clients: [Int32] = []

  init() throws {
    #if canImport(Glibc)
      let type = Int32(SOCK_STREAM.rawValue)
    #else
      let type = SOCK_STREAM
    #endif
    let listener = socket(AF_INET, type, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, size) == 0 && listen(listener, 0) == 0
          && getsockname(listener, address, &size) == 0
      }
    }
    self.listener = listener
    port = Int(UInt16(bigEndian: address.sin_port))
    guard isListening else { throw IOError(errnoCode: errno, reason: "listen") }
    for _ in 0..<4 {
      let client = socket(AF_INET, type, 0)
      _ = fcntl(client, F_SETFL, O_NONBLOCK)
      _ = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Self.connect(client, $0, size) }
      }
      clients.append(client)
    }
  }

  deinit {
    for descriptor in clients + [listener] { close(descriptor) }
  }

  private static func connect(_ client: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32
  {
    #if canImport(Glibc)
      Glibc.connect(client, address, size)
    #else
      Darwin.connect(client, address, size)
    #endif
  }
}
