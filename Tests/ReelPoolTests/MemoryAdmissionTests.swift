import ReelPlayback
import Testing

@testable import ReelPool

@Suite("Preloads within a memory limit")
struct MemoryAdmissionTests {
  private static var costs: StageCosts {
    var costs = StageCosts()
    for (stage, byteCount) in [
      (PreloadStage.manifest, 10), (.initialization, 20), (.firstFrame, 50), (.buffered, 100),
    ] {
      costs.record(StageCost(memoryByteCount: byteCount, networkByteCount: 0, duration: .zero), of: stage)
    }
    return costs
  }

  private static func admission(
    _ limit: Int, held: Int = 0, expected: Int = 200, costs: StageCosts = Self.costs
  )
    -> MemoryAdmission
  {
    MemoryAdmission(
      limit: limit, costs: costs, heldByteCount: held, expectedByteCount: expected, decodingByteCount: 40)
  }

  @Test(
    "A preload goes as far as the rest allows",
    arguments: [
      (340, PreloadStage.buffered, true), (339, .buffered, false), (300, .buffered, false),
      (299, .firstFrame, false), (250, .firstFrame, false), (249, .initialization, false),
      (219, .manifest, false),
      (209, .notLoaded, false), (100, .notLoaded, false), (0, .notLoaded, false),
    ])
  func stages(limit: Int, stage: PreloadStage, isWarm: Bool) {
    var admission = Self.admission(limit)
    let answer = admission.admit(
      MemoryAdmission.Request(wanted: PreloadTarget(stage: .buffered, isDecoderWarm: true)))
    #expect(answer.target.stage == stage)
    #expect(answer.target.isDecoderWarm == isWarm)
    #expect(answer.isLimited == !(stage == .buffered && isWarm))
  }

  @Test("What better ranks take is not there for others, and growth is what is still to come")
  func ranks() {
    var admission = Self.admission(420, held: 150)
    let request = MemoryAdmission.Request(wanted: .buffered)
    #expect(admission.admit(request) == MemoryAdmission.Answer(target: .buffered, isLimited: false))
    #expect(admission.admit(request) == MemoryAdmission.Answer(target: .buffered, isLimited: false))
    #expect(admission.growth == 50 + 200)
    #expect(admission.admit(request).target == PreloadTarget(stage: .initialization))
    #expect(admission.admit(request).target == .notLoaded)
  }

  @Test("What is held already stays as long as it fits, whatever was expected")
  func held() {
    var admission = Self.admission(300, expected: 210)
    let held = MemoryAdmission.Request(wanted: .buffered, granted: .buffered, heldByteCount: 80)
    #expect(admission.admit(held) == MemoryAdmission.Answer(target: .buffered, isLimited: false))
    admission = Self.admission(280, expected: 210)
    let answer = admission.admit(held)
    #expect(answer == MemoryAdmission.Answer(target: .buffered, isLimited: true))
    #expect(admission.growth == 210)
  }

  @Test("Before anything has been measured nothing is preloaded")
  func unknown() {
    var admission = Self.admission(1_000_000, costs: StageCosts())
    #expect(
      admission.admit(MemoryAdmission.Request(wanted: .buffered))
        == MemoryAdmission.Answer(target: .notLoaded, isLimited: true))
    var costs = StageCosts()
    costs.record(StageCost(memoryByteCount: 10, networkByteCount: 0, duration: .zero), of: .manifest)
    admission = Self.admission(1_000_000, costs: costs)
    #expect(admission.admit(MemoryAdmission.Request(wanted: .buffered)).target.stage == .manifest)
  }
}
