import Foundation
import HTTPTypes
import ReelCore
import ReelTesting
import ReelTestSupport
import ReelTransport

/// Bytes that are told apart by where they stand, but for places that are a multiple of 65,521 apart; at most
/// 8 million.
func pattern(_ count: Int) -> [UInt8] { Array(longPattern.prefix(count)) }

private let longPattern: [UInt8] = {
  // Copied in large pieces: debug builds and sanitizers take their time for what is written byte by byte.
  var piece: [UInt8] = []
  var state: UInt32 = 0x1234_5678
  for _ in 0..<65_521 {
    state = state &* 1_664_525 &+ 1_013_904_223
    piece.append(UInt8(truncatingIfNeeded: state >> 24))
  }
  var bytes: [UInt8] = []
  while bytes.count < 8_000_000 { bytes.append(contentsOf: piece) }
  return bytes
}()

/// As `makeFetcher`, with three retries and no connection ahead unless told.
func quickFetcher(
  connectTimeout: Duration = HangLimit.duration, firstByteTimeout: Duration = HangLimit.duration,
  idleTimeout: Duration = HangLimit.duration, attempts: Int = 3, connectionsAhead: Int = 0
) -> TransportFetcher {
  makeFetcher(
    connectTimeout: connectTimeout, firstByteTimeout: firstByteTimeout, idleTimeout: idleTimeout,
    attempts: attempts, connectionsAhead: connectionsAhead)
}

/// Collects the metrics that a request reports.
final class Reports: Sendable {
  private let reports = Locked<[RequestMetrics]>([])

  var all: [RequestMetrics] { reports.withLock { $0 } }

  func request(
    _ url: URL, range: ByteRange? = nil, headers: HTTPFields = [:], purpose: FetchPurpose = .segment
  ) -> FetchRequest {
    FetchRequest(url: url, range: range, headers: headers, purpose: purpose) { metrics in
      self.reports.withLock { $0.append(metrics) }
    }
  }
}

extension String {
  var bytes: [UInt8] { Array(utf8) }
}
