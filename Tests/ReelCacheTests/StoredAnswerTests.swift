import Foundation
import HTTPTypes
import ReelCore
import Testing

@testable import ReelCache

/// RFC 9111, field by field.
@Suite struct StoredAnswerTests {
  private static let sent = WallTime(nanosecondsSince1970: 1_793_954_977_000_000_000)
  private static let date = "Fri, 06 Nov 2026 08:49:37 GMT"

  private func answer(_ fields: HTTPFields, isManifest: Bool = false, status: Int = 200) -> StoredAnswer? {
    let request = FetchRequest(url: .example("/a.m4s"), purpose: .segment)
    var response = FetchResponse(
      url: request.url, contentType: nil, bodyOffset: 0, bodyByteCount: 10, resourceByteCount: 10,
      supportsRanges: true,
      body: FetchBody { nil })
    response.head = AnswerHead(status: status, fields: fields, isPersonal: false)
    return StoredAnswer(
      response, to: request, isManifest: isManifest, sentAt: Self.sent, receivedAt: Self.sent)
  }

  private func lifetime(_ fields: HTTPFields, isManifest: Bool = false) -> Int? {
    guard let answer = answer(fields, isManifest: isManifest) else { return nil }
    return (0..<20).first { second in
      !answer.isFresh(
        at: Self.sent + MediaTime(value: Int64(second) * 10, timescale: 1), assuming: .seconds(100))
    }.map { $0 * 10 }
  }

  @Test(
    arguments: [
      ([.cacheControl: "max-age=60"], 60),
      ([.cacheControl: "MAX-AGE=60, public"], 60),
      ([.cacheControl: "max-age=\"60\""], 60),
      ([.cacheControl: "max-age=60, max-age=30"], 30),
      ([.cacheControl: "max-age=soon"], 0),
      ([.cacheControl: "max-age=-5"], 0),
      ([.cacheControl: "max-age=60", .expires: "0"], 60),
      ([.cacheControl: "s-maxage=60", .eTag: "\"1\""], 0),
      ([.cacheControl: "max-age=60, no-cache"], 0),
      ([.cacheControl: "no-cache=\"Set-Cookie, X\", max-age=60"], 0),
      ([.cacheControl: "max-age=60", .age: "30"], 30),
      ([.cacheControl: "max-age=60", .age: "what"], 60),
      ([.cacheControl: "max-age=60", .date: "Fri, 06 Nov 2026 08:49:07 GMT"], 30),
      ([.cacheControl: "max-age=60", .date: "Sat, 06 Nov 2027 08:49:07 GMT"], 60),
      ([.cacheControl: "max-age=60", .date: "Thu, 06 Nov 2025 08:49:07 GMT"], 0),
      ([.date: date, .expires: "Fri, 06 Nov 2026 08:50:37 GMT"], 60),
      ([.date: date, .expires: "never"], 0),
      ([.date: date, .expires: "-1"], 0),
      ([.date: date, .expires: "Fri, 06 Nov 2020 08:50:37 GMT"], 0),
      ([HTTPField.Name("Pragma")!: "no-cache"], 0),
      ([:], 100),
      ([.date: date], 100),
      ([.eTag: "W/\"1\""], 0),
      ([.lastModified: "Fri, 06 Nov 2020 08:50:37 GMT"], 0),
    ] as [(HTTPFields, Int)])
  func freshness(fields: HTTPFields, seconds: Int) { #expect(lifetime(fields) == seconds) }

  @Test func aManifestHasNoAssumedLifetime() { #expect(lifetime([:], isManifest: true) == 0) }

  @Test(
    arguments: [
      ([.cacheControl: "no-store"], 200), ([.cacheControl: "max-age=60,NO-STORE"], 200),
      ([.vary: "Accept, *"], 200),
      ([.vary: "cookie"], 200), ([.setCookie: "a=b"], 200), ([:], 203), ([:], 204),
    ] as [(HTTPFields, Int)])
  func isNotKept(fields: HTTPFields, status: Int) { #expect(answer(fields, status: status) == nil) }

  @Test(
    arguments: [
      ([.eTag: "\"1\""], "\"1\""), ([.eTag: "W/\"1\""], nil), ([.eTag: "1"], nil), ([.eTag: "\"\""], nil),
      ([:], nil),
      ([.eTag: "\"1\"", .contentEncoding: "gzip"], nil),
      // A date is strong if it is a minute older than the answer.
      ([.lastModified: "Fri, 06 Nov 2026 08:48:00 GMT", .date: date], "Fri, 06 Nov 2026 08:48:00 GMT"),
      ([.lastModified: "Fri, 06 Nov 2026 08:49:00 GMT", .date: date], nil),
      ([.lastModified: "Fri, 06 Nov 2026 08:48:00 GMT"], nil),
    ] as [(HTTPFields, String?)])
  func strongValidators(fields: HTTPFields, validator: String?) {
    #expect(answer(fields)?.strongValidator == validator)
    #expect((answer(fields)?.version == answer(fields)?.version) == (validator != nil))
  }

  @Test func aConfirmationRenews() throws {
    var stored = try #require(answer([.eTag: "\"1\"", .cacheControl: "max-age=10", .age: "5"]))
    let later = Self.sent + MediaTime(value: 1000, timescale: 1)
    #expect(stored.conditions == [.ifNoneMatch: "\"1\""])
    let head = AnswerHead(status: 304, fields: [.cacheControl: "max-age=70"], isPersonal: false)
    let verdict = stored.update(with: head, sentAt: later, receivedAt: later)
    #expect(verdict == .holds)
    #expect(stored.isFresh(at: later + MediaTime(value: 69, timescale: 1), assuming: .zero))
    #expect(!stored.isFresh(at: later + MediaTime(value: 71, timescale: 1), assuming: .zero))
  }

  @Test(
    arguments: [
      ([.eTag: "\"2\""], .isOther), ([.contentLength: "11"], .isOther),
      ([.eTag: "\"2\"", .cacheControl: "no-store"], .isOther), ([.cacheControl: "no-store"], .holdsOnce),
      ([.setCookie: "a=b"], .holdsOnce),
      // The length of the confirmation itself.
      ([.contentLength: "0"], .holds), ([.contentLength: "10"], .holds), ([.contentLength: "ten"], .holds),
    ] as [(HTTPFields, StoredAnswer.Verdict)])
  func verdicts(fields: HTTPFields, expected: StoredAnswer.Verdict) throws {
    var stored = try #require(answer([.eTag: "\"1\""]))
    let head = AnswerHead(status: 304, fields: fields, isPersonal: false)
    let verdict = stored.update(with: head, sentAt: Self.sent, receivedAt: Self.sent)
    #expect(verdict == expected)
  }

  @Test(arguments: ["", "\"\"", "W/\"\""]) func anEmptyTagAsksNothing(tag: String) throws {
    #expect(try #require(answer([.eTag: tag])).conditions.isEmpty)
    #expect(
      try #require(answer([.eTag: "\"\"", .lastModified: Self.date])).conditions
        == [.ifModifiedSince: Self.date])
  }

  @Test func staleAnswersStandInForErrors() throws {
    let stored = try #require(answer([.cacheControl: "max-age=10, stale-if-error=50"]))
    let seconds = { Self.sent + MediaTime(value: $0, timescale: 1) }
    #expect(stored.servesErrors(at: seconds(59), assuming: .zero))
    #expect(!stored.servesErrors(at: seconds(61), assuming: .zero))
    #expect(
      try #require(answer([.cacheControl: "max-age=10"])).servesErrors(at: seconds(11), assuming: .zero)
        == false)
  }
}
