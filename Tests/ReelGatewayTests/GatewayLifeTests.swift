import Foundation
import NIOCore
import NIOPosix
import ReelCore
import ReelGateway
import ReelManifest
import ReelTesting
import ReelTestSupport
import ServiceLifecycle
import Testing

@Suite(.hangLimit) struct GatewayLifeTests {
  @Test("In a service group, a gateway serves until the group shuts down")
  func service() async throws {
    try await withFixture("dash-number") { gateway, _ in
      let group = ServiceGroup(services: [gateway], logger: silentLogger)
      let running = Task { try await group.run() }
      #expect(try await http(gateway.url).status == 200)
      await group.triggerGracefulShutdown()
      try await running.value
      await #expect(throws: (any Error).self) { _ = try await http(gateway.url) }
    }
  }

  /// Far more than all sockets and buffers on the way hold.
  private static let size = 64 << 20

  @Test func originIsReadNoFasterThanTheClientReads() async throws {
    try await withSegment { gateway, origin in
      let client = try await StalledClient.connect(port: gateway.port)
      try await client.send("GET /media/video-0/0.m4s HTTP/1.1\r\nHost: x\r\n\r\n")
      // The origin has sent what fits on the way, and waits; the rest follows what the client reads.
      await origin.wait { $0.requests.last.map { $0.bodyBytesSent > 0 } ?? false }
      let received = try await client.read(atLeast: 1 << 20)
      #expect(received >= 1 << 20)
      let sent = try #require(origin.requestLog.last?.bodyBytesSent)
      #expect(sent < Int64(Self.size))
      #expect(origin.requestLog.last?.isComplete == false)
      let rest = try await client.read(atLeast: Self.size)
      #expect(rest > Self.size)
      await origin.wait { $0.requests.last?.isComplete ?? false }
      try await client.close()
    }
  }

  @Test func clientThatLeavesEndsTheTransfer() async throws {
    try await withSegment { gateway, origin in
      let client = try await StalledClient.connect(port: gateway.port)
      try await client.send("GET /media/video-0/0.m4s HTTP/1.1\r\nHost: x\r\n\r\n")
      await origin.wait { $0.requests.last.map { $0.bodyBytesSent > 0 } ?? false }
      let open = origin.snapshot.openConnectionCount
      try await client.close()
      // A transfer that was called off takes its connection with it.
      await origin.wait { $0.openConnectionCount < open }
      #expect(origin.requestLog.last?.isComplete == false)
    }
  }

  /// A client that leaves while the origin says nothing is noticed as well.
  @Test func clientThatLeavesASilentOrigin() async throws {
    try await withSegment(of: 100_000) { gateway, origin in
      origin.setFaults([FaultRule("big.m4s", .stall(after: 1_000))])
      let client = try await StalledClient.connect(port: gateway.port)
      try await client.send("GET /media/video-0/0.m4s HTTP/1.1\r\nHost: x\r\n\r\n")
      _ = try await client.read(atLeast: 500)
      let open = origin.snapshot.openConnectionCount
      try await client.close()
      await origin.wait { $0.openConnectionCount < open }
    }
  }

  /// The option is one of a list, in any letter case (RFC 9110 §7.6.1), and HTTP/1.0 closes without it.
  @Test(arguments: [
    "HTTP/1.1\r\nConnection: close", "HTTP/1.1\r\nconnection: Close", "HTTP/1.1\r\nConnection: TE, close",
    "HTTP/1.1\r\nConnection: TE\r\nConnection: CLOSE", "HTTP/1.0", "HTTP/1.0\r\nConnection: keep-alive",
  ])
  func connectionCloses(head: String) async throws {
    try await withSegment(of: 100_000) { gateway, _ in
      for path in ["master.m3u8", "media/video-0/0.m4s", "missing"] {
        let answer = try await untilClosed("GET /\(path) \(head)\r\nHost: x\r\n\r\n", gateway)
        let end = try #require(answer.range(of: "\r\n\r\n"))
        let fields = answer[..<end.lowerBound].lowercased()
        #expect(fields.contains("connection: close"), "\(fields)")
        guard head.hasPrefix("HTTP/1.0") else { continue }
        #expect(fields.hasPrefix("http/1.0"))
        #expect(!fields.contains("transfer-encoding"), "\(fields)")
        if path.hasSuffix("m4s") { #expect(answer[end.upperBound...].unicodeScalars.count == 100_000) }
      }
    }
  }

  /// A client that sends nothing more may still read.
  @Test(arguments: ["master.m3u8", "media/video-0/0.m4s"])
  func halfClosedClientGetsItsAnswer(path: String) async throws {
    try await withSegment(of: 1_000_000) { gateway, _ in
      for _ in 0..<20 {
        let answer = try await untilClosed(
          "GET /\(path) HTTP/1.1\r\nHost: x\r\n\r\n", gateway, closesOutput: true)
        #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer.prefix(200))")
        if path.hasSuffix("m4s") { #expect(answer.unicodeScalars.count > 1_000_000) }
      }
    }
  }

  /// Stopping does not wait for a client that does not read, nor for an origin that does not answer.
  @Test func stopEndsWhatGoesOn() async throws {
    try await Origin.use { origin in
      origin.setRoute("/big.m4s", Origin.Response([UInt8](repeating: 7, count: Self.size)))
      let gateway = try await Gateway.start(
        VirtualHLS(Self.presentation(origin.url("big.m4s"))),
        configuration: Gateway.Configuration(delivery: .relayed), fetcher: makeFetcher(attempts: 1),
        logger: silentLogger)
      let reading = try await StalledClient.connect(port: gateway.port)
      try await reading.send("GET /media/video-0/0.m4s HTTP/1.1\r\nHost: x\r\n\r\n")
      let idle = try await StalledClient.connect(port: gateway.port)
      try await idle.send("GET /master.m3u8 HTTP/1.1\r\nHost: x\r\n\r\n")
      _ = try await idle.read(atLeast: 100)
      await origin.wait { $0.requests.last.map { $0.bodyBytesSent > 0 } ?? false }
      let open = origin.snapshot.openConnectionCount
      await gateway.stop()
      await gateway.stop()
      await origin.wait { $0.openConnectionCount < open }
      try await idle.waitUntilClosed()
      let error = await reelError { _ = try await http(gateway.url) }
      #expect(error?.kind == .network)
      // The port is free again.
      let other = try await Gateway.start(
        VirtualHLS(Self.presentation(origin.url("big.m4s"))),
        configuration: Gateway.Configuration(port: gateway.port), fetcher: makeFetcher(attempts: 1),
        logger: silentLogger
      )
      #expect(other.url == gateway.url)
      await other.stop()
    }
  }

  @Test func portInUse() async throws {
    try await Origin.use { origin in
      let hls = try VirtualHLS(Self.presentation(origin.url("x.m4s")))
      let error = await reelError {
        _ = try await Gateway.start(
          hls, configuration: Gateway.Configuration(port: origin.port), fetcher: makeFetcher(attempts: 1),
          logger: silentLogger)
      }
      #expect(error?.kind == .network)
      #expect(error?.location == "127.0.0.1:\(origin.port)")
      #expect(error?.reason == "can't listen: address already in use")
    }
  }

  @Test func addressesThatAreNone() async throws {
    let hls = try VirtualHLS(Self.presentation(Fixtures.folder))
    for port in [-1, 65_536] {
      let error = await reelError {
        _ = try await Gateway.start(
          hls, configuration: Gateway.Configuration(port: port), fetcher: makeFetcher(attempts: 1),
          logger: silentLogger)
      }
      #expect(error?.kind == .usage)
      #expect(error?.reason == "\(port) is not a port")
    }
    let error = await reelError {
      _ = try await Gateway.start(
        hls, configuration: Gateway.Configuration(host: "no host at all"), fetcher: makeFetcher(attempts: 1),
        logger: silentLogger)
    }
    #expect(error?.kind == .usage)
    #expect(error?.reason == "no host at all is not a host to listen on")
    #expect(error?.location == "no host at all:0")
  }

  /// Runs `body` with a gateway for a segment of so many bytes, and the origin that it is at.
  private func withSegment(
    of count: Int = size, _ body: (Gateway, Origin) async throws -> Void
  ) async throws {
    try await Origin.use { origin in
      origin.setRoute("/big.m4s", Origin.Response([UInt8](repeating: 7, count: count)))
      try await withGateway(Self.presentation(origin.url("big.m4s")), isProxy: true) { gateway in
        try await body(gateway, origin)
      }
    }
  }

  private static func presentation(_ url: URL) -> Presentation {
    let segment = SegmentReference(
      number: 1, url: url, start: .zero, duration: MediaTime(value: 1, timescale: 1))
    let rung = Rung(id: "v", bitsPerSecond: 1, media: .segments(SegmentList([segment])))
    let group = TrackGroup(
      id: nil, kind: .video, language: nil, label: nil, roles: [], isDefault: true, rungs: [rung])
    return Presentation(
      format: .dash, duration: nil,
      periods: [Period(id: nil, start: .zero, duration: nil, trackGroups: [group])])
  }
}

/// A connection that reads when it is told to, and not before.
private final class StalledClient: Sendable {
  private let channel: any Channel
  private let counter: Counter

  private init(channel: any Channel, counter: Counter) {
    self.channel = channel
    self.counter = counter
  }

  static func connect(port: Int) async throws -> StalledClient {
    let counter = Counter()
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .channelOption(.autoRead, value: false)
      .channelOption(.socketOption(.so_rcvbuf), value: 64 << 10)
      .channelInitializer { $0.pipeline.addHandler(counter) }
      .connect(host: "127.0.0.1", port: port).get()
    return StalledClient(channel: channel, counter: counter)
  }

  func send(_ text: String) async throws {
    try await channel.writeAndFlush(ByteBuffer(string: text))
  }

  /// Reads until it has got so many bytes since it was connected, and gives their number.
  func read(atLeast count: Int) async throws -> Int {
    while counter.count < count {
      let change = counter.change(on: channel.eventLoop)
      channel.read()
      try await change.get()
    }
    return counter.count
  }

  func close() async throws { try await channel.close() }

  func waitUntilClosed() async throws {
    channel.read()
    try await channel.closeFuture.get()
  }

  private final class Counter: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private let state = Locked<(count: Int, waiter: EventLoopPromise<Void>?)>((0, nil))

    var count: Int { state.withLock { $0.count } }

    /// Done after the next read, and failed where the connection is closed.
    func change(on loop: any EventLoop) -> EventLoopFuture<Void> {
      let promise = loop.makePromise(of: Void.self)
      state.withLock { $0.waiter = promise }
      return promise.futureResult
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = unwrapInboundIn(data).readableBytes
      state.withLock { $0.count += bytes }
    }

    func channelReadComplete(context: ChannelHandlerContext) { take()?.succeed() }

    func channelInactive(context: ChannelHandlerContext) { take()?.fail(ChannelError.eof) }

    private func take() -> EventLoopPromise<Void>? {
      state.withLock { state in
        let waiter = state.waiter
        state.waiter = nil
        return waiter
      }
    }
  }
}
