import Foundation
import ReelCore

/// Delivers the content of `data:` URLs (RFC 2397).
struct DataFetcher: Fetching {
  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let session = TransferSession(request)
    // Errors must not contain a key.
    let name = request.purpose == .key ? "data:" : "\(request.url.absoluteString.prefix(64))…"
    defer { session.finish() }
    session.noteRequest()
    guard let (contentType, whole) = Self.content(of: request.url.absoluteString) else {
      throw ReelError(.badMedia, "the data: URL can't be read", at: name)
    }
    let offset = request.range?.offset ?? 0
    guard offset < whole.count || offset == 0 else {
      throw ReelError(
        .badMedia, "byte \(offset) is beyond the end: it has \(whole.count) bytes",
        at: name)
    }
    let part = whole.dropFirst(Int(offset)).prefix(Int(clamping: request.range?.length ?? .max))
    let rest = Locked(request.method == .head || part.isEmpty ? nil : Array(part))
    return FetchResponse(
      url: request.url, contentType: contentType, bodyOffset: offset, bodyByteCount: Int64(part.count),
      resourceByteCount: Int64(whole.count), supportsRanges: true,
      body: FetchBody {
        let bytes = rest.withLock { $0.take() }
        if let bytes { session.noteBytes(bytes.count) }
        return bytes
      })
  }

  // MARK: - Private

  /// `data:[<mediatype>][;base64],<data>`.
  private static func content(of text: String) -> (contentType: String, bytes: [UInt8])? {
    guard let comma = text.firstIndex(of: ","), let colon = text.firstIndex(of: ":"), colon < comma else {
      return nil
    }
    var type = text[text.index(after: colon)..<comma]
    let payload = String(text[text.index(after: comma)...])
    let isBase64 = type.lowercased().hasSuffix(";base64")
    if isBase64 { type = type.dropLast(7) }
    guard let bytes = isBase64 ? base64(payload) : percentDecoded(payload) else { return nil }
    return (type.isEmpty ? "text/plain;charset=US-ASCII" : String(type), bytes)
  }

  private static func base64(_ text: String) -> [UInt8]? {
    guard let plain = percentDecoded(text) else { return nil }
    // Some URLs lack the padding, or use the URL alphabet (RFC 4648 §5).
    var letters = plain.compactMap { byte -> UInt8? in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      case 0x09, 0x0A, 0x0D, 0x20, UInt8(ascii: "="): nil
      default: byte
      }
    }
    guard letters.count % 4 != 1 else { return nil }
    while letters.count % 4 != 0 { letters.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(letters)).map { Array($0) }
  }

  private static func percentDecoded(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
      rest.removeFirst(2)
    }
    return bytes
  }
}
