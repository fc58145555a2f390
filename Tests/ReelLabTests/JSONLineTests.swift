import ReelCore
import ReelLab
import Testing

@Suite("Lines of JSON")
struct JSONLineTests {
  private struct Record: Encodable {
    var latenessP50Ms = 1.5
    var ptsTime: Double?
    var md5 = "a/b"
    var isHDR = true
    var bytesPerSecond = 7
    var byStage = ["firstFrame": 1]
  }

  @Test("Keys are in snake_case and in order, those of dictionaries as they are")
  func keys() throws {
    #expect(
      try JSONLine.string(Record())
        == #"{"by_stage":{"firstFrame":1},"bytes_per_second":7,"is_hdr":true,"lateness_p50_ms":1.5,"md5":"a/b"}"#
    )
  }

  @Test("Keys that are in snake_case already stay")
  func snakeCase() throws {
    struct Record: Encodable {
      enum CodingKeys: String, CodingKey {
        case first = "p50_ms"
        case second = "hit_ratio_by_stage"
      }

      let first = 1
      let second = 2
    }
    #expect(try JSONLine.string(Record()) == #"{"hit_ratio_by_stage":2,"p50_ms":1}"#)
  }

  @Test("What JSON has no text for is an error that names its kind")
  func error() {
    let error = #expect(throws: ReelError.self) { _ = try JSONLine.string([Double.nan], of: "report") }
    #expect(error?.kind == .internalFault)
    #expect(error?.reason.hasPrefix("a report can't be written as JSON: ") == true)
  }
}
