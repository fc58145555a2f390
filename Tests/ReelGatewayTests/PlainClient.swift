import Foundation
import NIOCore
import NIOPosix
import ReelCore
import ReelGateway

/// An answer as it came, redirects not followed.
struct PlainAnswer: Sendable {
  var status: Int
  /// Names in small letters.
  var fields: [String: String]
  var body: [UInt8]

  var text: String { String(decoding: body, as: UTF8.self) }
}

/// Sends a request over a connection of its own, and gives the answer.
func http(
  _ method: String = "GET", _ url: URL, fields: [String: String] = [:]
) async throws -> PlainAnswer {
  let port = url.port ?? 80
  let query = url.query(percentEncoded: true).map { "?\($0)" } ?? ""
  let path = url.path(percentEncoded: true)
  let lines = fields.map { "\($0): \($1)\r\n" }.joined()
  let bytes = try await exchange("\(method) \(path)\(query) HTTP/1.1\r\n\(lines)", port: port)
  guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else {
    throw ReelError(.network, "no whole head: \(String(decoding: bytes.prefix(200), as: UTF8.self))")
  }
  let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
  var answer = PlainAnswer(status: 0, fields: [:], body: Array(bytes[end.upperBound...]))
  answer.status = Int(head[0].split(separator: " ").dropFirst().first ?? "") ?? 0
  for line in head.dropFirst() {
    let parts = line.split(separator: ":", maxSplits: 1)
    answer.fields[parts[0].lowercased()] = parts.last?.trimmingCharacters(in: .whitespaces)
  }
  return answer
}

func http(_ url: URL, fields: [String: String] = [:]) async throws -> PlainAnswer {
  try await http("GET", url, fields: fields)
}

/// Sends these lines to a gateway, and gives what it sends back, as text of a character a byte.
func raw(_ request: String, _ gateway: Gateway) async throws -> String {
  let bytes = try await exchange(request, port: gateway.port)
  return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
}

/// Sends these bytes, and gives all that the gateway sends until it closes.
///
/// - Parameter closesOutput: Closes the sending side right after the request.
func untilClosed(_ request: String, _ gateway: Gateway, closesOutput: Bool = false) async throws -> String {
  let bytes = try await exchange(whole: request, port: gateway.port, closesOutput: closesOutput)
  return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
}

/// All that a server sends until it closes, which it is asked to.
private func exchange(_ request: String, port: Int) async throws -> [UInt8] {
  try await exchange(whole: "\(request)Host: 127.0.0.1\r\nConnection: close\r\n\r\n", port: port)
}

private func exchange(whole request: String, port: Int, closesOutput: Bool = false) async throws -> [UInt8] {
  let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>
  do {
    channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
      }
  } catch {
    throw ReelError(.network, "no connection: \(error)")
  }
  return try await channel.executeThenClose { inbound, outbound in
    try await outbound.write(ByteBuffer(string: request))
    if closesOutput { outbound.finish() }
    var received = ByteBuffer()
    do {
      for try await part in inbound { received.writeImmutableBuffer(part) }
    } catch is IOError {
      // A reset is an end as well.
    }
    return Array(received.readableBytesView)
  }
}
