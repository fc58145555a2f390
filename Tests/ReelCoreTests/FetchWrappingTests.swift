import Foundation
import ReelCore
import Testing

@Suite("What fetchers in front of others share")
struct FetchWrappingTests {
  private final class Token: Sendable {
    let record: @Sendable () -> Void
    init(_ record: @escaping @Sendable () -> Void) { self.record = record }
    deinit { record() }
  }

  private let notes = Locked<[String]>([])

  private var onEnd: FetchBody.EndHandler {
    { [notes] result in
      let text =
        switch result {
        case .success: "end"
        case .failure(let error): (error as? ReelError)?.reason ?? "cancelled"
        }
      notes.withLock { $0.append(text) }
    }
  }

  /// A body of two chunks, which notes when it is let go.
  private func response(_ url: URL) -> FetchResponse {
    let token = Token { [notes] in notes.withLock { $0.append("body") } }
    let rest = Locked<[[UInt8]]>([[1, 2], [3]])
    return FetchResponse(
      url: url, contentType: "a/b", bodyOffset: 0, bodyByteCount: 3, resourceByteCount: 3,
      supportsRanges: true,
      body: FetchBody {
        withExtendedLifetime(token) { rest.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
      })
  }

  @Test("A wrapped body is pulled by way of the wrapper, and its end is noted before the body's own")
  func body() async throws {
    let url = try #require(URL(string: "http://reel.test/a"))
    do {
      let wrapped = response(url).wrappingBody(onEnd: onEnd) { try await $0.next()?.map { $0 + 1 } }
      #expect(wrapped.contentType == "a/b" && wrapped.bodyByteCount == 3)
      #expect(try await wrapped.body.next() == [2, 3])
      #expect(try await wrapped.body.collect(upTo: 10) == [4])
      #expect(try await wrapped.body.next() == nil)
      withExtendedLifetime(wrapped) { #expect(notes.withLock { $0 } == ["end"]) }
    }
    #expect(notes.withLock { $0 } == ["end", "body"])
  }

  @Test(
    "A body beyond the limit is an error of the caller's kind",
    arguments: [ReelError.Kind.badManifest, .server])
  func limit(kind: ReelError.Kind) async throws {
    let url = try #require(URL(string: "http://reel.test/a"))
    #expect(try await response(url).body.collect(upTo: 3, orThrow: kind) == [1, 2, 3])
    let error = await #expect(throws: ReelError.self) {
      try await response(url).body.collect(upTo: 2, orThrow: kind)
    }
    #expect(error?.kind == kind)
    #expect(error?.reason == "larger than the limit of 2 bytes")
    let other = await #expect(throws: ReelError.self) { try await response(url).body.collect(upTo: 2) }
    #expect(other?.kind == .badMedia)
  }

  @Test("A body that has ended ends again when it is pulled again, without what it is made of")
  func again() async throws {
    let calls = Locked(0)
    let finished = FetchBody(onEnd: onEnd) {
      calls.withLock { $0 += 1 }
      return nil
    }
    for _ in 0..<2 { #expect(try await finished.next() == nil) }
    let failed = FetchBody(onEnd: onEnd) {
      calls.withLock { $0 += 1 }
      throw ReelError(.network, "gone", at: "a")
    }
    for _ in 0..<2 {
      let error = await #expect(throws: ReelError.self) { try await failed.next() }
      #expect(error?.reason == "gone")
    }
    #expect(calls.withLock { $0 } == 2)
    #expect(notes.withLock { $0 } == ["end", "gone"])
  }

  @Test("A body that is let go before its end is cancelled, before that which it holds is let go")
  func release() async throws {
    let url = try #require(URL(string: "http://reel.test/a"))
    do {
      let wrapped = response(url).wrappingBody(onEnd: onEnd) { try await $0.next() }
      #expect(try await wrapped.body.next() == [1, 2])
      withExtendedLifetime(wrapped) { #expect(notes.withLock { $0 } == []) }
    }
    #expect(notes.withLock { $0 } == ["cancelled", "body"])
  }

  @Test("A body that fails ends once, with the error")
  func failure() async throws {
    let body = FetchBody(onEnd: onEnd) { throw ReelError(.network, "lost") }
    for _ in 0..<2 { await #expect(throws: ReelError(.network, "lost")) { try await body.next() } }
    #expect(notes.withLock { $0 } == ["lost"])
  }

  @Test("Metrics are told to each who asked for them, the last one first")
  func reports() throws {
    let url = try #require(URL(string: "http://reel.test/a"))
    var request = FetchRequest(url: url, purpose: .segment) { [notes] _ in
      notes.withLock { $0.append("first") }
    }
    request.addReport { [notes] _ in notes.withLock { $0.append("second") } }
    request.report?(
      RequestMetrics(url: url, purpose: .segment, requestCount: 1))
    #expect(notes.withLock { $0 } == ["second", "first"])
  }
}
